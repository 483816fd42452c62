#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/half.h"
#include "weights/file_weights.h"
#include "weights/model_folder.h"
#include "weights/safetensors.h"
#include "weights/save.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("weights_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  fs::path write(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static std::string file(const std::string& header, size_t data_bytes) {
    const uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header + std::string(data_bytes, '\x3c');
  }
  std::string error_of(const std::string& bytes) {
    const auto opened = SafetensorsFile::open(write("x.safetensors", bytes));
    if (opened) return "opened";
    EXPECT_EQ(opened.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
    return opened.error().message;
  }
  std::string header_error(const std::string& header, size_t data_bytes) { return error_of(file(header, data_bytes)); }

  fs::path folder_;
};

TEST_F(Weights, ImpossibleHeaderLengthsAreRefusedBeforeAllocating) {
  std::string bytes(64, '\0');
  for (const uint64_t length : {uint64_t{0x07DF9D40}, UINT64_MAX, uint64_t{1000}}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_THAT(error_of(bytes), HasSubstr(std::to_string(length)));
  }
  EXPECT_THAT(error_of(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(error_of("<html>"), HasSubstr("only 6 bytes"));
  EXPECT_THAT(error_of("<!doctype html><html></html>"), HasSubstr("is this a safetensors file?"));
}

TEST_F(Weights, OverlapsGapsAndBrokenRanges) {
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)") + a +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_THAT(header_error(two("[0,8]", "[4,12]"), 12), HasSubstr("\"b\" overlaps"));
  EXPECT_THAT(header_error(two("[0,8]", "[12,20]"), 20), HasSubstr("\"b\" follows a gap"));
  EXPECT_THAT(header_error(two("[0,8]", "[16,8]"), 16), HasSubstr("offsets within"));
  EXPECT_THAT(header_error(two("[0,8]", "[8,16]"), 12), HasSubstr("offsets within 12"));
  EXPECT_THAT(header_error(two("[0,8]", "[8,16]"), 32), HasSubstr("bytes appended"));
  EXPECT_EQ(header_error(two("[0,8]", "[8,16]"), 16), "opened");
}

TEST_F(Weights, BrokenJson) {
  const std::string w = R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(header_error("{" + w + "," + w + "}", 4), HasSubstr("duplicate key \"w\""));
  EXPECT_THAT(header_error("{" + w, 4), HasSubstr("broken JSON"));
  EXPECT_THAT(header_error("[]", 0), HasSubstr("'{'"));
  EXPECT_THAT(header_error(R"({"a\nb":1})", 0), HasSubstr("tensor \"a?b\""));
  for (const char* junk : {" ", "\n", "\xef\xbb\xbf"})
    EXPECT_THAT(header_error(junk + ("{" + w + "}"), 4), HasSubstr("'{'"));
  for (int spaces = 0; spaces < 8; ++spaces)
    EXPECT_EQ(header_error("{" + w + "}" + std::string(spaces, ' '), 4), "opened");
  for (const char* bad : {R"({"w":1})", R"({"w":{}})", R"({"w":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})",
                          R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
                          R"({"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
                          R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}})"})
    EXPECT_THAT(header_error(bad, 4), HasSubstr("tensor \"w\""));
  EXPECT_THAT(header_error(R"({"w":{"dtype":"BAD","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("unknown dtype \"BAD\""));
  EXPECT_THAT(header_error(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4),
              HasSubstr("fewer bytes"));
  EXPECT_THAT(header_error(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("8 bytes for its shape, got 4"));
}

TEST_F(Weights, MetadataAndEmptyTensors) {
  EXPECT_EQ(header_error(R"({"__metadata__":{}})", 0), "opened");
  const auto opened = SafetensorsFile::open(write(
      "y.safetensors",
      file(R"({"__metadata__":{"format":"pt"},"scaled_fp8":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[0,0]}})",
           0)));
  ASSERT_TRUE(opened);
  EXPECT_THAT((*opened)->names(), ElementsAre("scaled_fp8"));
  EXPECT_THAT(header_error(R"({"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,0]}})", 0),
              HasSubstr("1 bytes for its shape"));
}

TEST_F(Weights, UnalignedDataIsReadBitForBit) {
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header += std::string(header.size() % 2 == 0 ? 1 : 0, ' ');
  std::string bytes = file(header, 8);
  const float values[] = {1.25f, -3.5f};
  std::memcpy(bytes.data() + bytes.size() - 8, values, 8);
  const auto opened = SafetensorsFile::open(write("x.safetensors", bytes));
  ASSERT_TRUE(opened);
  EXPECT_THAT((*opened)->find("w")->to_floats(), ElementsAre(1.25f, -3.5f));
  EXPECT_FALSE((*opened)->find("v"));
}

TEST_F(Weights, SavedFilesReadBack) {
  const Tensor t = Tensor::from({2, 1}, std::vector<float>{1, 2});
  ASSERT_TRUE(save_safetensors(folder_ / "s.safetensors", {{"a", t.view()}, {"b", t.view()}}));
  const auto opened = SafetensorsFile::open(folder_ / "s.safetensors");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->find("b")->shape, (Shape{2, 1}));
  EXPECT_THAT((*opened)->find("b")->to_floats(), ElementsAre(1, 2));
}

TEST_F(Weights, EightBitFloatsAndDoublesAreWidened) {
  std::string bytes = file(
      R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F64","shape":[1],"data_offsets":[2,10]},"c":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]}})",
      12);
  const uint8_t e4m3[] = {0x38, 0x7e};
  const double b = 0.5;
  const uint16_t c = 0x7f61;
  std::memcpy(bytes.data() + bytes.size() - 12, e4m3, 2);
  std::memcpy(bytes.data() + bytes.size() - 10, &b, 8);
  std::memcpy(bytes.data() + bytes.size() - 2, &c, 2);
  const auto opened = FileWeights::open({write("x.safetensors", bytes)});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->find("a")->dtype, DType::kF16);
  EXPECT_THAT((*opened)->find("a")->to_floats(), ElementsAre(1, 448));
  EXPECT_EQ((*opened)->find("b")->dtype, DType::kF32);
  EXPECT_THAT((*opened)->find("b")->to_floats(), ElementsAre(0.5f));
  EXPECT_TRUE(std::isfinite((*opened)->find("c")->to_floats()[0]));

  const double huge = 1e300;
  std::memcpy(bytes.data() + bytes.size() - 10, &huge, 8);
  EXPECT_THAT(FileWeights::open({write("z.safetensors", bytes)}).error().message, HasSubstr("does not fit a float"));
}

TEST_F(Weights, ScaledEightBitCheckpointsAreRefused) {
  const auto opened = FileWeights::open(
      {write("x.safetensors", file(R"({"w.scale_weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4))});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("\"w.scale_weight\": scaled 8-bit checkpoints are not supported"));
}

TEST_F(Weights, OneSetOfFilesIsChosen) {
  const auto found = [&](const std::string& variant = "") {
    const auto paths = find_weight_files(folder_, variant);
    std::vector<std::string> names;
    if (!paths) return std::vector<std::string>{paths.error().message};
    for (const auto& p : *paths) names.push_back(p.filename().string());
    return names;
  };
  EXPECT_THAT(found()[0], HasSubstr("got nothing"));
  write("diffusion_pytorch_model.bin", "");
  EXPECT_THAT(found()[0], HasSubstr("got diffusion_pytorch_model.bin; .bin files"));
  write("diffusion_pytorch_model.fp16.safetensors", "");
  EXPECT_THAT(found(), ElementsAre("diffusion_pytorch_model.fp16.safetensors"));
  write("diffusion_pytorch_model.safetensors", "");
  EXPECT_THAT(found(), ElementsAre("diffusion_pytorch_model.safetensors"));
  EXPECT_THAT(found("fp16"), ElementsAre("diffusion_pytorch_model.fp16.safetensors"));
  fs::remove(folder_ / "diffusion_pytorch_model.fp16.safetensors");
  EXPECT_THAT(found("fp16")[0], HasSubstr("of variant fp16"));
}

TEST_F(Weights, ShardsInBothNamingOrders) {
  for (const char* order : {"model-0000%-of-00002.fp16.safetensors", "model.fp16-0000%-of-00002.safetensors"}) {
    std::vector<std::string> names;
    for (const char* number : {"1", "2"}) {
      std::string name = order;
      name.replace(name.find('%'), 1, number);
      const Tensor t = Tensor::from({1}, std::vector<float>{1});
      ASSERT_TRUE(save_safetensors(folder_ / name, {{std::string("t") + number, t.view()}}));
      names.push_back(name);
    }
    write("model.safetensors.index.fp16.json",
          R"({"weight_map":{"t1":")" + names[0] + R"(","t2":")" + names[1] + R"("}})");
    const auto paths = find_weight_files(folder_);
    ASSERT_TRUE(paths) << paths.error().message;
    const auto opened = FileWeights::open(*paths);
    ASSERT_TRUE(opened);
    EXPECT_THAT((*opened)->names(), ElementsAre("t1", "t2"));
    fs::remove(folder_ / names[1]);
    EXPECT_THAT(find_weight_files(folder_).error().message, HasSubstr("is missing"));
  }
  write("model.safetensors.index.fp16.json", R"({"weight_map":{"t":")" + std::string(300, 'x') + R"("}})");
  EXPECT_THAT(find_weight_files(folder_).error().message, HasSubstr("is missing"));
  write("model.safetensors.index.fp16.json", R"({"weight_map":{"t":"../../etc/passwd"}})");
  EXPECT_THAT(find_weight_files(folder_).error().message, HasSubstr("plain file name"));
}

TEST_F(Weights, TheLedgerNamesEveryFault) {
  const Tensor t = Tensor::from({2, 3}, std::vector<float>(6));
  ASSERT_TRUE(
      save_safetensors(folder_ / "m.safetensors",
                       {{"a.weight", t.view()}, {"left", t.view()}, {"x.position_ids", t.view()}, {"conv", t.view()}}));
  const auto weights = FileWeights::open({folder_ / "m.safetensors"});
  ASSERT_TRUE(weights);
  WeightLedger ledger(**weights);
  const WeightView view(ledger);
  (view / "a").require("weight", {3, 2});
  (view / "b" / 0).require("weight", {1});
  view.require("conv", {2, 3, 1, 1});
  EXPECT_EQ(
      ledger.finish("unet").error().message,
      "[weights.unet] the weights do not fit the configuration: 1 tensor missing: b.0.weight; 1 tensor of the wrong "
      "shape or type: a.weight is 2x3, expected 3x2; 1 tensor unexpected: left");
}

TEST_F(Weights, WhatIsNoModelFolderIsSaidPlainly) {
  const auto message = [](const fs::path& p) { return ModelFolder::open(p).error().message; };
  EXPECT_THAT(message(folder_ / "nowhere"), HasSubstr("there is no such folder"));
  EXPECT_THAT(message(folder_), HasSubstr("no model_index.json"));
  EXPECT_THAT(message(write("m.safetensors", "")), HasSubstr("single-file checkpoints are not supported yet"));
  EXPECT_THAT(message(write("m.ckpt", "")), HasSubstr("a file that is no model"));
  fs::create_directories(folder_ / "odd" / "model_index.json");  // a folder where a file should be
  EXPECT_THAT(message(folder_ / "odd"), HasSubstr("no model_index.json"));
  write("model_index.json", "[]");
  EXPECT_THAT(message(folder_), HasSubstr("not a JSON object"));
  write("model_index.json", "{}");
  const auto opened = ModelFolder::open(folder_);
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->config("unet").error().message, HasSubstr("no unet/config.json"));
  EXPECT_THAT(opened->scheduler().error().message, HasSubstr("no scheduler/scheduler_config.json"));
}

}  // namespace
}  // namespace sfumato
