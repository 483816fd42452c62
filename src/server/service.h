#pragma once
// What all families of endpoints share: from a request to a job, and to its end.
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <string>

#include "pipeline/options.h"
#include "server/http.h"
#include "server/jobs.h"
#include "server/workers.h"

namespace sfumato::server {

struct RequestLimits {
  int64_t pixels = 2048 * 2048;  ///< of one picture
  int steps = 150;
  int pictures = 10;
  size_t prompt_bytes = 16 << 10;
};

/// What a request comes to, whatever family of endpoints it came by.
struct Asked {
  std::string model;                                 ///< empty: the first
  nlohmann::json fields = nlohmann::json::object();  ///< of the option list
  std::string init, mask;                            ///< encoded pictures; empty: none
  bool mask_is_alpha = false;                        ///< where the mask is transparent, the picture is repainted
  std::string format = "png";                        ///< png, jpeg or webp: set_format()
  int quality = 95;
  bool preview = false;
};

/// `field` asks for pictures in this format.
Result<void> set_format(Asked& asked, std::string_view field, const std::string& format);

/// A limit of this server, as opposed to a value that makes no sense: 422.
Error limit_error(const std::string& message);
/// The answer to what went wrong, in the form of error_response; the field at fault is read off the message.
HttpResponse refusal(const Error& error);

struct ServedModel {
  std::string name;
  std::string path;  ///< empty: the embedded one
  Model model;       ///< opened, to check requests against; the workers have their own
};

struct Counters {
  std::map<std::pair<std::string, unsigned>, uint64_t> requests;  ///< by path's family and status
  std::map<std::string, uint64_t> jobs;                           ///< by how they ended, and "submitted", "refused"
  uint64_t pictures = 0;
  double job_seconds = 0;
};

class Service {
 public:
  Service(std::vector<ServedModel> models, RequestLimits limits, JobQueue& queue, Workers& workers);

  /// Checks every value, and puts the job into the queue. Errors: usage (400), limits (422), no place (429), drain
  /// (503).
  Awaitable<std::variant<JobPtr, HttpResponse>> submit(Asked asked);
  /// Returns when the job is over; if the client goes first, the job is cancelled.
  Awaitable<void> finish(const JobPtr& job, ClientWatch& client);
  void cancel(const JobPtr& job);

  const std::vector<ServedModel>& models() const { return models_; }
  const ServedModel* find_model(const std::string& name) const;
  const RequestLimits& limits() const { return limits_; }
  JobQueue& queue() { return queue_; }
  Workers& workers() { return workers_; }
  Counters& counters() { return counters_; }

  /// Says that it ends, to who asks; still takes work, until close().
  void drain() { draining_ = true; }
  bool is_draining() const { return draining_; }
  void close() { closed_ = true; }
  bool is_idle() const { return queue_.waiting() == 0 && queue_.running().empty(); }

 private:
  Result<JobSpec> make_spec(Asked asked);
  Result<void> check_limits(const Plan& plan, const Request& request) const;

  std::vector<ServedModel> models_;
  RequestLimits limits_;
  JobQueue& queue_;
  Workers& workers_;
  Counters counters_;
  boost::asio::thread_pool decoding_{1};  // pictures are looked into away from the event loop
  bool draining_ = false, closed_ = false;
};

/// May a request set this option? It concerns a picture, and is no file of the server's.
bool is_for_requests(const Option& option);

}  // namespace sfumato::server
