#include "tests/cli/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace sfumato {
namespace {

/// In the child: never returns.
[[noreturn]] void become(const std::vector<std::string>& words, const std::filesystem::path& out,
                         const std::filesystem::path& err, const Environment& more, size_t address_space) {
  constexpr int kMode = 0600;
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, kMode), STDOUT_FILENO);
  dup2(open(err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, kMode), STDERR_FILENO);
  for (const auto& [name, value] : more) setenv(name.c_str(), value.c_str(), 1);
  if (address_space > 0) {
    const rlimit limit{address_space, address_space};
    setrlimit(RLIMIT_AS, &limit);
  }
  std::vector<char*> arguments = {const_cast<char*>(SFUMATO_PROGRAM)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(SFUMATO_PROGRAM, arguments.data());
  _exit(127);
}

}  // namespace

RunningProgram::RunningProgram(const std::filesystem::path& folder, const std::vector<std::string>& words,
                               const Environment& more, size_t address_space)
    : out_(folder / "stdout"), err_(folder / "stderr") {
  std::filesystem::remove(out_);
  pid_ = fork();
  if (pid_ == 0) become(words, out_, err_, more, address_space);
}

void RunningProgram::wait_for_output(const std::string& text) const {
  siginfo_t ended = {};
  while (read_file(out_).find(text) == std::string::npos &&
         waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void RunningProgram::send(int signal) const {
  kill(pid_, signal);
}

Outcome RunningProgram::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  constexpr int kKilled = 128;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status), read_file(out_), read_file(err_)};
}

std::string tiny_model(const std::string& family) {
  return source_file("tests/golden/pipelines/" + family);
}

std::string source_file(const std::string& path) {
  return std::string(SFUMATO_SOURCE_DIR "/") + path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace sfumato
