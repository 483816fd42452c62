#pragma once
// Runs the program under test and says what came of it.
#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sfumato {

struct Outcome {
  int code = -1;  ///< exit code; 128 + N: killed by signal N
  std::string out, err;
};
using Environment = std::map<std::string, std::string>;

/// A program that runs; its output is collected in files of `folder`.
class RunningProgram {
 public:
  RunningProgram(const std::filesystem::path& folder, const std::vector<std::string>& words,
                 const Environment& more = {}, size_t address_space = 0);
  /// Waits until it has written `text` to standard output.
  void wait_for_output(const std::string& text) const;
  void interrupt() const { send(SIGINT); }
  void send(int signal) const;
  Outcome wait();

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

/// The tiny models that tools/golden/pipelines.py makes.
std::string tiny_model(const std::string& family = "sd1");
std::string source_file(const std::string& path);
std::string read_file(const std::filesystem::path& path);

}  // namespace sfumato
