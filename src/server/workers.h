#pragma once
// Keeps worker processes alive and gives them jobs. A worker that dies takes no job with it: the one it had is drawn
// again by another, once; a second loss is the job's failure.
#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs.h"

namespace sfumato::server {

struct WorkerOptions {
  std::vector<std::string> command;  ///< the program and its words; the socket is its file descriptor 3
  nlohmann::json setup;              ///< the first frame
  int count = 1;
  std::vector<std::vector<int>> cpus;  ///< of each worker: the CPUs it may use; empty: all
};

class Workers {
 public:
  /// `log` takes one event: a name and fields.
  using Log = std::function<void(const char* event, nlohmann::ordered_json fields)>;
  Workers(boost::asio::io_context& loop, WorkerOptions options, JobQueue& queue, Log log);
  ~Workers();

  void start();
  /// A job was submitted: an idle worker takes it.
  void wake();
  /// Stops a running job within one step.
  void cancel(const JobPtr& job);
  /// At least one worker can draw.
  bool is_ready() const;
  int restarts() const { return restarts_; }
  /// A model that cannot be loaded at all: the server's end.
  const std::optional<Error>& fatal() const { return fatal_; }

 private:
  struct Worker;
  boost::asio::awaitable<void> look_after(Worker& worker);
  boost::asio::awaitable<bool> spawn(Worker& worker);
  boost::asio::awaitable<void> serve(Worker& worker);
  void handle(Worker& worker, const nlohmann::json& header, std::string blob);
  void give(Worker& worker);
  void post(Worker& worker, std::string bytes);
  boost::asio::awaitable<void> write_out(Worker& worker);
  void lost(Worker& worker);

  boost::asio::io_context& loop_;
  WorkerOptions options_;
  JobQueue& queue_;
  Log log_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<Error> fatal_;
  int restarts_ = 0;
};

}  // namespace sfumato::server
