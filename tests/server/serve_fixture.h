#pragma once
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/server/client.h"

namespace sfumato {

/// A server process with the tiny SD1 model under the name "tiny"; ended by SIGTERM, which must give exit code 0.
class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Starts it and waits until it is ready.
  void serve(const std::vector<std::string>& more = {});
  /// SIGTERM, and what came of it.
  Outcome stop();

  std::string log() const { return read_file(folder_ / "stderr"); }
  /// The newest worker's process.
  pid_t worker() const;
  double metric(const std::string& name) const;

  /// A job on the tiny model: 64x64, 3 steps, seed 7; `more` changes it.
  nlohmann::json job(const nlohmann::json& more = nlohmann::json::object()) const;
  /// About `steps` milliseconds of work, at least.
  nlohmann::json long_job(int steps = 1000) const { return job({{"steps", steps}, {"width", 128}, {"height", 128}}); }
  std::string submit(const nlohmann::json& body) const;
  nlohmann::json state(const std::string& id) const;
  /// When it is over.
  nlohmann::json finished(const std::string& id) const;
  std::string picture(const std::string& id, int index = 0) const;
  /// What `sfumato generate` draws for job().
  std::string alone(const std::vector<std::string>& words = {}, const std::string& prompt = "a red apple") const;

  std::filesystem::path folder_;
  std::unique_ptr<RunningProgram> program_;
  int port_ = 0;
};

/// Asks until it is so; false after a minute.
bool eventually(const std::function<bool()>& is_so);

std::string bytes_of_base64(const std::string& text);

}  // namespace sfumato
