#pragma once
// What people asked the server for, from the queue to the pictures. One thread, the event loop's, touches all of this.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace sfumato::server {

using Clock = std::chrono::steady_clock;

/// All that a worker needs to know, checked.
struct JobSpec {
  std::string model;
  nlohmann::json fields;       ///< of the option list; the seed is filled in
  std::string format = "png";  ///< png, jpeg or webp
  int quality = 95;
  bool preview = false;
  std::string init, mask;      ///< encoded pictures; empty: none
  bool mask_is_alpha = false;  ///< the mask is white where the picture is transparent
  int pictures = 1;
  std::string batch_key;  ///< jobs with the same one, not empty, may be drawn together (pipeline/plan.h)
  int batch_size = 1;     ///< so many pictures at most
  double work = 1;        ///< picture pixels times network passes: what its time is in proportion to
};

enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };
std::string_view state_name(JobState state);

struct JobPicture {
  std::string bytes;
  uint32_t seed = 0;
  std::string parameters;
  int width = 0, height = 0;
};

struct Job {
  Job(boost::asio::any_io_executor executor, std::string id, JobSpec spec);

  std::string id;
  JobSpec spec;
  JobState state = JobState::kQueued;
  std::string stage;
  int step = 0, steps = 0;
  std::string preview;  ///< the newest, a JPEG
  std::vector<JobPicture> pictures;
  std::vector<std::string> warnings;
  Error error;              ///< when failed
  int tries = 0;            ///< by how many workers
  bool is_to_stop = false;  ///< its worker was told
  double batch_work = 1;    ///< of all that it is drawn together with
  Clock::time_point started = {}, finished = {};

  bool is_over() const { return state != JobState::kQueued && state != JobState::kRunning; }
  double seconds() const;  ///< of drawing, so far or in all
  /// Something about it is new: whoever waits goes on.
  void notify();
  /// Returns after the next notify(), or when `limit` has passed.
  boost::asio::awaitable<void> changed(Clock::duration limit);

 private:
  boost::asio::any_io_executor executor_;
  std::set<boost::asio::steady_timer*> waiters_;  // one each: a shared timer's waiters would wake one another
};
using JobPtr = std::shared_ptr<Job>;

struct QueueLimits {
  std::string id_prefix = {};             ///< of every job's id
  size_t queued = 64;                     ///< jobs that wait
  size_t queued_bytes = size_t{1} << 30;  ///< and the pictures they came with
  size_t kept = 256;                      ///< finished jobs that can still be asked for
  size_t kept_bytes = size_t{512} << 20;  ///< and their pictures in all
};

class JobQueue {
 public:
  JobQueue(boost::asio::any_io_executor executor, QueueLimits limits) : executor_(executor), limits_(limits) {}

  /// No place for another job, or its pictures.
  bool is_full() const;
  JobPtr submit(JobSpec spec);
  /// Null: no such job, or forgotten.
  JobPtr find(const std::string& id) const;
  /// The next to draw, and those behind it that share its batch, become running. Empty: none waits. What a worker
  /// lost before is drawn alone.
  std::vector<JobPtr> take();
  /// A running job that its worker lost: it is the next again.
  void put_back(const JobPtr& job);
  void finish(const JobPtr& job, JobState state);

  std::function<void(const Job&)> on_finish;  ///< for those who count

  size_t waiting() const { return waiting_.size(); }
  const std::vector<JobPtr>& running() const { return running_; }
  /// Jobs before this one; 0 for the next, and for one that runs.
  size_t position(const Job& job) const;
  /// Seconds until this job is done; less than 0: nothing was drawn yet that tells.
  double eta(const Job& job) const;
  /// Seconds until a place in the queue is free, at least 1: for Retry-After.
  int retry_after() const;

 private:
  double remaining(const Job& job) const;
  void forget_old();

  boost::asio::any_io_executor executor_;
  QueueLimits limits_;
  std::map<std::string, JobPtr> jobs_;
  std::deque<JobPtr> waiting_;
  std::vector<JobPtr> running_;
  std::deque<JobPtr> finished_;
  size_t finished_bytes_ = 0;
  double seconds_per_work_ = -1;  // a running mean; less than 0: unknown
};

}  // namespace sfumato::server
