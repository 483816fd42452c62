#include "server/jobs.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>

#include "server/random_id.h"

namespace sfumato::server {
namespace {

size_t bytes_of(const Job& job) {
  size_t bytes = job.spec.init.size() + job.spec.mask.size();
  for (const JobPicture& picture : job.pictures) bytes += picture.bytes.size();
  return bytes;
}

}  // namespace

std::string_view state_name(JobState state) {
  constexpr std::string_view kNames[] = {"queued", "running", "done", "failed", "cancelled"};
  return kNames[static_cast<int>(state)];
}

Job::Job(boost::asio::any_io_executor executor, std::string job_id, JobSpec job_spec)
    : id(std::move(job_id)), spec(std::move(job_spec)), executor_(std::move(executor)) {}

double Job::seconds() const {
  if (started == Clock::time_point{}) return 0;
  return std::chrono::duration<double>((is_over() ? finished : Clock::now()) - started).count();
}

void Job::notify() {
  for (boost::asio::steady_timer* waiter : waiters_) waiter->cancel();
}

boost::asio::awaitable<void> Job::changed(Clock::duration limit) {
  boost::asio::steady_timer timer(executor_, limit);
  struct Registration {  // also when the waiting coroutine is cancelled
    std::set<boost::asio::steady_timer*>& waiters;
    boost::asio::steady_timer* timer;
    ~Registration() { waiters.erase(timer); }
  } registration{waiters_, &timer};
  waiters_.insert(&timer);
  boost::system::error_code ignored;
  co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
}

bool JobQueue::is_full() const {
  size_t bytes = 0;
  for (const JobPtr& job : waiting_) bytes += bytes_of(*job);
  return waiting_.size() >= limits_.queued || bytes >= limits_.queued_bytes;
}

JobPtr JobQueue::submit(JobSpec spec) {
  auto job = std::make_shared<Job>(executor_, limits_.id_prefix + random_id(), std::move(spec));
  jobs_[job->id] = job;
  waiting_.push_back(job);
  return job;
}

JobPtr JobQueue::find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

std::vector<JobPtr> JobQueue::take() {
  std::vector<JobPtr> taken;
  int pictures = 0;
  double work = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const JobPtr job = *at;
    const JobSpec& spec = job->spec;
    const bool fits = taken.empty() || (!spec.batch_key.empty() && spec.batch_key == taken[0]->spec.batch_key &&
                                        spec.model == taken[0]->spec.model && job->tries == 0 && taken[0]->tries == 0 &&
                                        pictures + spec.pictures <= spec.batch_size);
    if (!fits) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    taken.push_back(job);
    pictures += spec.pictures;
    work += spec.work;
  }
  for (const JobPtr& job : taken) {
    running_.push_back(job);
    job->state = JobState::kRunning;
    job->started = Clock::now();
    job->batch_work = work;
    ++job->tries;
    job->notify();
  }
  for (const JobPtr& other : waiting_) other->notify();  // each is further on
  return taken;
}

void JobQueue::put_back(const JobPtr& job) {
  std::erase(running_, job);
  job->state = JobState::kQueued;
  job->step = job->steps = 0;
  job->pictures.clear();
  waiting_.push_front(job);
  job->notify();
}

void JobQueue::finish(const JobPtr& job, JobState state) {
  if (job->is_over()) return;
  std::erase(running_, job);
  std::erase(waiting_, job);
  job->state = state;
  job->finished = Clock::now();
  job->preview.clear();
  if (state == JobState::kDone) {
    constexpr double kWeight = 0.3;  // of the newest
    const double latest = job->seconds() / job->batch_work;
    seconds_per_work_ = seconds_per_work_ < 0 ? latest : (1 - kWeight) * seconds_per_work_ + kWeight * latest;
  }
  if (on_finish) on_finish(*job);
  finished_.push_back(job);
  finished_bytes_ += bytes_of(*job);
  job->notify();
  forget_old();
}

void JobQueue::forget_old() {
  while (finished_.size() > limits_.kept || (finished_.size() > 1 && finished_bytes_ > limits_.kept_bytes)) {
    finished_bytes_ -= bytes_of(*finished_.front());
    jobs_.erase(finished_.front()->id);
    finished_.pop_front();
  }
}

size_t JobQueue::position(const Job& job) const {
  for (size_t i = 0; i < waiting_.size(); ++i)
    if (waiting_[i].get() == &job) return i + running_.size();
  return 0;
}

double JobQueue::remaining(const Job& job) const {
  if (job.state == JobState::kRunning && job.step > 0) return job.seconds() / job.step * (job.steps - job.step);
  const double work = job.state == JobState::kRunning ? job.batch_work : job.spec.work;
  return seconds_per_work_ < 0 ? -1 : std::max(0.0, seconds_per_work_ * work - job.seconds());
}

double JobQueue::eta(const Job& job) const {
  if (job.is_over()) return 0;
  double total = remaining(job);
  if (total < 0 || job.state == JobState::kRunning) return total;
  // Shared out over the workers that are busy now.
  double before = 0;
  for (const JobPtr& other : running_) before += std::max(0.0, remaining(*other));
  for (const JobPtr& other : waiting_) {
    if (other.get() == &job) break;
    before += std::max(0.0, remaining(*other));
  }
  return total + before / static_cast<double>(std::max<size_t>(1, running_.size()));
}

int JobQueue::retry_after() const {
  double soonest = -1;
  for (const JobPtr& job : running_)
    if (const double left = remaining(*job); left >= 0 && (soonest < 0 || left < soonest)) soonest = left;
  constexpr double kMost = 600;
  return static_cast<int>(std::ceil(std::clamp(soonest, 1.0, kMost)));
}

}  // namespace sfumato::server
