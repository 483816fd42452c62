// Models and pictures that are missing or broken: exit code 3 (or 1, 4), one line, nothing written.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "tests/cli/cli_fixture.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kVae = "vae/diffusion_pytorch_model.safetensors";
constexpr const char* kUnet = "unet/diffusion_pytorch_model.safetensors";

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string container(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}
std::string container(const std::string& header, size_t data = 0) {
  return container(header.size(), header + std::string(data, '\0'));
}

class InputTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    model_ = folder_ / "model";
    fs::copy(tiny_model(), model_, fs::copy_options::recursive);
  }
  void expect_bad(const std::string& part, int code = 3) const {
    expect_failure(run(tiny({"-m", model_.string(), "--quiet"})), code, part);
    EXPECT_FALSE(exists("out.png"));
  }
  fs::path model_;
};

TEST_F(InputTest, ModelsThatAreNone) {
  for (const std::string& where : {path("nowhere"), folder_.string(), (model_ / kUnet).string(),
                                   source_file("tests/golden/image/rgb.png"), std::string("/dev/null")}) {
    expect_failure(run(tiny({"-m", where})), 3, where);
    expect_failure(run({"info", "schedule", "-m", where}), 3, where);
  }
}

TEST_F(InputTest, BrokenConfigs) {
  for (const char* file : {"model_index.json", "unet/config.json", "vae/config.json", "text_encoder/config.json",
                           "scheduler/scheduler_config.json"}) {
    const std::string good = read_file(model_ / file);
    for (const std::string& bad :
         {std::string(), std::string("{"), std::string("[]"), good.substr(0, good.size() / 2)}) {
      SCOPED_TRACE(str(file, ": ", bad));
      write_file(model_ / file, bad);
      expect_bad("[");
    }
    fs::remove(model_ / file);
    expect_bad(std::string(file).starts_with("text") ? "text encoder" : ".json");
    write_file(model_ / file, good);
  }
}

TEST_F(InputTest, BrokenContainers) {
  const std::string good = read_file(model_ / kUnet);
  const std::string two =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":)";
  const std::vector<std::string> broken = {
      "",
      "short",
      container(0x07df9d40, std::string(56, 'x')),  // a header of 132 MB in a file of 64 bytes
      container(~uint64_t{0}, "{}"),                // longer than anything
      container(" {}"),                             // must start with {
      container("{"),                               //
      container(two + "[4,12]}}", 12),              // overlap
      container(two + "[12,20]}}", 20),             // gap
      container(two + "[16,8]}}", 16),              // end before start
      container(two + "[8,16]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 16),  // twice
      container(R"({"a":{"dtype":"BAD","shape":[2],"data_offsets":[0,8]}})", 8),
      container(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
      container(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
      good.substr(0, good.size() - 1),  // an interrupted download
      good + std::string(16, '\0'),     // bytes after the last tensor
  };
  for (const std::string& bytes : broken) {
    SCOPED_TRACE(bytes.substr(0, 100));
    write_file(model_ / kUnet, bytes);
    expect_bad(kUnet);
  }
}

TEST_F(InputTest, MissingTensorsAreNamed) {
  std::string bytes = read_file(model_ / kUnet);
  bytes.replace(bytes.find("conv_in.weight"), 14, "conv_up.weight");
  write_file(model_ / kUnet, bytes);
  expect_bad("conv_in.weight");
  fs::remove(model_ / kUnet);
  expect_bad("safetensors");
}

TEST_F(InputTest, NotANumberIsNoPicture) {
  std::string bytes = read_file(model_ / kVae);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(8, length));
  const auto& offsets = header["decoder.conv_out.bias"]["data_offsets"];
  for (size_t at = 8 + length + offsets[0].get<size_t>(); at < 8 + length + offsets[1].get<size_t>(); ++at)
    bytes[at] = '\x7f';
  write_file(model_ / kVae, bytes);  // 0x7f7f is a NaN in binary16
  const Outcome outcome = run(tiny({"-m", model_.string(), "--quiet"}));
  expect_failure(outcome, 1, "12288 of 12288");
  EXPECT_THAT(outcome.err, HasSubstr("NaN"));
  EXPECT_FALSE(exists("out.png"));
}

TEST_F(InputTest, BrokenPictures) {
  write_file(path("text.png"), "no picture");
  write_file(path("empty.jpg"), "");
  const std::string good = read_file(source_file("tests/golden/image/rgb.png"));
  write_file(path("cut.png"), good.substr(0, good.size() / 2));
  std::string huge = read_file(source_file("tests/golden/image/one.png"));  // its header says 60000 x 60000
  huge.replace(16, 8, std::string("\0\0\xea\x60\0\0\xea\x60", 8)).replace(29, 4, "\x0f\xb0\xe2\x15");
  write_file(path("huge.png"), huge);
  const std::string fine = source_file("tests/golden/image/rgb.png");
  for (const char* name : {"text.png", "empty.jpg", "cut.png", "huge.png", "absent.png"}) {
    SCOPED_TRACE(name);
    expect_failure(run(tiny({"-i", path(name)})), 3, name);
    expect_failure(run(tiny({"-i", fine, "--mask", path(name)})), 3, name);
  }
  for (const char* name : {"text.png", "empty.jpg", "huge.png", "absent.png"})
    expect_failure(run({"info", path(name)}), 3, name);
  expect_failure(run({"info", source_file("tests/golden/image/gray.png")}), 3, "no generation parameters");
}

TEST_F(InputTest, OutOfMemoryIsSaid) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space of their own";
#endif
  constexpr size_t kLimit = 350'000'000;
  const Outcome outcome = RunningProgram(folder_, tiny({"--size", "4096x4096", "--quiet"}), {}, kLimit).wait();
  expect_failure(outcome, 4, "memory");
  EXPECT_FALSE(exists("out.png"));
}

}  // namespace
}  // namespace sfumato
