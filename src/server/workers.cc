#include "server/workers.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/strings.h"
#include "server/frame.h"

namespace sfumato::server {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

constexpr int kWorkerFd = 3;
constexpr int kMostTries = 2;
constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{5000};  // between a death and the next start

/// In the child: becomes the worker, or exits.
[[noreturn]] void become(const std::vector<char*>& words, int socket, const std::vector<int>& cpus, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody to draw for
  if (getppid() != parent) _exit(0);
  if (!cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  signal(SIGINT, SIG_IGN);  // the terminal's Ctrl-C is for the server, which stops its workers itself
  signal(SIGTERM, SIG_IGN);
  if (socket == kWorkerFd)
    fcntl(socket, F_SETFD, 0);
  else
    dup2(socket, kWorkerFd);
  // Not the server's sockets: a port or a connection must close when the server closes it, or dies.
  close_range(kWorkerFd + 1, ~0u, 0);
  execv(words[0], words.data());
  _exit(127);
}

}  // namespace

struct Workers::Worker {
  size_t index = 0;
  pid_t pid = -1;
  bool ready = false;
  std::vector<JobPtr> jobs;  ///< that it draws now, together
  std::optional<asio::local::stream_protocol::socket> socket;
  std::deque<std::string> outbox;
  bool writing = false;
};

Workers::Workers(asio::io_context& loop, WorkerOptions options, JobQueue& queue, Log log)
    : loop_(loop), options_(std::move(options)), queue_(queue), log_(std::move(log)) {}

Workers::~Workers() {
  for (const auto& worker : workers_)
    if (worker->pid > 0) kill(worker->pid, SIGKILL);
}

void Workers::start() {
  for (int i = 0; i < options_.count; ++i) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.index = static_cast<size_t>(i);
    asio::co_spawn(loop_, look_after(worker), asio::detached);
  }
}

void Workers::wake() {
  for (const auto& worker : workers_) give(*worker);
}

bool Workers::is_ready() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->ready; });
}

void Workers::cancel(const JobPtr& job) {
  for (const auto& worker : workers_) {
    if (std::find(worker->jobs.begin(), worker->jobs.end(), job) == worker->jobs.end()) continue;
    job->is_to_stop = true;
    return post(*worker, encode_frame({{{"type", "cancel"}, {"id", job->id}}}));
  }
  queue_.finish(job, JobState::kCancelled);
}

asio::awaitable<void> Workers::look_after(Worker& worker) {
  auto pause = kFirstPause;
  while (!fatal_) {
    const auto begin = Clock::now();
    if (co_await spawn(worker)) co_await serve(worker);
    lost(worker);
    if (fatal_) break;
    if (Clock::now() - begin > std::chrono::minutes(1)) pause = kFirstPause;
    asio::steady_timer timer(loop_, pause);
    co_await timer.async_wait(asio::use_awaitable);
    pause = std::min(2 * pause, kLongestPause);
    ++restarts_;
  }
}

asio::awaitable<bool> Workers::spawn(Worker& worker) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) co_return false;
  std::vector<char*> words;
  for (std::string& word : options_.command) words.push_back(word.data());
  words.push_back(nullptr);
  const std::vector<int> cpus =
      options_.cpus.empty() ? std::vector<int>() : options_.cpus[worker.index % options_.cpus.size()];
  const pid_t parent = getpid();
  worker.pid = fork();
  if (worker.pid == 0) become(words, ends[1], cpus, parent);
  close(ends[1]);
  if (worker.pid < 0) {
    close(ends[0]);
    co_return false;
  }
  worker.socket.emplace(loop_, asio::local::stream_protocol(), ends[0]);
  log_("worker started", {{"worker", worker.index}, {"pid", worker.pid}});
  post(worker, encode_frame({options_.setup}));
  co_return true;
}

/// Its frames, until it is gone.
asio::awaitable<void> Workers::serve(Worker& worker) {
  boost::system::error_code failed;
  auto token = asio::redirect_error(asio::use_awaitable, failed);
  for (;;) {
    char bytes[FramePrefix::kBytes];
    co_await asio::async_read(*worker.socket, asio::buffer(bytes), token);
    const auto prefix = failed ? std::nullopt : FramePrefix::decode(bytes);
    if (!prefix) co_return;
    std::string header(prefix->header_bytes, '\0'), blob(prefix->blob_bytes, '\0');
    co_await asio::async_read(*worker.socket, asio::buffer(header), token);
    if (!failed) co_await asio::async_read(*worker.socket, asio::buffer(blob), token);
    const Json parsed = Json::parse(header, nullptr, /*allow_exceptions=*/false);
    if (failed || !parsed.is_object()) co_return;
    handle(worker, parsed, std::move(blob));
  }
}

void Workers::handle(Worker& worker, const Json& header, std::string blob) {
  const std::string type = header.at("type");
  if (type == "broken") {
    fatal_ = Error{static_cast<ErrorKind>(header.at("kind").get<int>()), header.at("message")};
    loop_.stop();
    return;
  }
  if (type == "ready") {
    worker.ready = true;
    log_("worker ready", {{"worker", worker.index}});
    return give(worker);
  }
  const auto found = std::find_if(worker.jobs.begin(), worker.jobs.end(),
                                  [&](const JobPtr& job) { return job->id == header.at("id"); });
  if (found == worker.jobs.end()) return;
  const JobPtr job = *found;
  if (type == "progress") {
    job->stage = header.at("stage");
    if (const int steps = header.at("steps"); steps > 0) {  // while sampling
      job->steps = steps;
      job->step = header.at("step");
    }
    if (!blob.empty()) job->preview = std::move(blob);
    return job->notify();
  }
  if (type == "picture") {
    job->pictures.push_back(
        {std::move(blob), header.at("seed"), header.at("parameters"), header.at("width"), header.at("height")});
    return job->notify();
  }
  worker.jobs.erase(found);
  if (type == "done") {
    job->warnings = header.at("warnings").get<std::vector<std::string>>();
    queue_.finish(job, JobState::kDone);
  } else {
    job->error = {static_cast<ErrorKind>(header.at("kind").get<int>()), header.at("message")};
    queue_.finish(job, job->error.kind == ErrorKind::kCancelled ? JobState::kCancelled : JobState::kFailed);
  }
  log_("job over", {{"job", job->id}, {"state", state_name(job->state)}, {"seconds", job->seconds()}});
  give(worker);
}

void Workers::give(Worker& worker) {
  if (!worker.ready || !worker.jobs.empty()) return;
  worker.jobs = queue_.take();
  if (worker.jobs.empty()) return;
  Json jobs = Json::array();
  std::string pictures;
  for (const JobPtr& job : worker.jobs) {
    const JobSpec& spec = job->spec;
    log_("job started", {{"job", job->id}, {"worker", worker.index}});
    jobs.push_back({{"id", job->id},
                    {"fields", spec.fields},
                    {"format", spec.format},
                    {"quality", spec.quality},
                    {"preview", spec.preview},
                    {"init_bytes", spec.init.size()},
                    {"mask_bytes", spec.mask.size()},
                    {"mask_is_alpha", spec.mask_is_alpha}});
    pictures += spec.init + spec.mask;
  }
  const std::string& model = worker.jobs[0]->spec.model;
  post(worker, encode_frame({{{"type", "generate"}, {"model", model}, {"jobs", jobs}}, std::move(pictures)}));
}

void Workers::post(Worker& worker, std::string bytes) {
  worker.outbox.push_back(std::move(bytes));
  if (worker.writing) return;
  worker.writing = true;
  asio::co_spawn(loop_, write_out(worker), asio::detached);
}

asio::awaitable<void> Workers::write_out(Worker& worker) {
  boost::system::error_code failed;
  while (!worker.outbox.empty() && worker.socket && !failed) {
    const std::string bytes = std::move(worker.outbox.front());
    worker.outbox.pop_front();
    co_await asio::async_write(*worker.socket, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, failed));
  }
  worker.writing = false;  // after a failure the reader notices too, and clears up
}

void Workers::lost(Worker& worker) {
  int status = 0;
  if (worker.pid > 0) {
    kill(worker.pid, SIGKILL);
    waitpid(worker.pid, &status, 0);
  }
  log_("worker lost", {{"worker", worker.index}, {"pid", worker.pid}, {"status", status}});
  worker.pid = -1;
  worker.ready = false;
  worker.outbox.clear();
  worker.socket.reset();
  const std::vector<JobPtr> jobs = std::exchange(worker.jobs, {});
  for (auto at = jobs.rbegin(); at != jobs.rend(); ++at) {  // so that the first is the first again
    const JobPtr& job = *at;
    if (job->is_to_stop) {
      queue_.finish(job, JobState::kCancelled);
      continue;
    }
    if (job->tries < kMostTries) {
      queue_.put_back(job);
      continue;
    }
    job->error = {ErrorKind::kRuntime, str("[server.worker] the process that drew this picture died ", job->tries,
                                           " times; is there enough memory for this size?")};
    queue_.finish(job, JobState::kFailed);
  }
  wake();
}

}  // namespace sfumato::server
