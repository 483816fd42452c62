// What needs no plugin: the lowering's text, the compile cache, how a plugin is found.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "backend/pjrt/compile_cache.h"
#include "backend/pjrt/discovery.h"
#include "backend/pjrt/stablehlo.h"
#include "ir/builder.h"

namespace sfumato::pjrt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(StableHloText, WeightsAreArgumentsAndHalfIsForProductsOnly) {
  ir::Builder b("small");
  const ir::Value x = b.input("x", {1, 8, 8, 4});
  const ir::Value conv =
      b.conv2d(x, b.weight("w", {6, 4, 3, 3}, DType::kF16), b.weight("b", {6}, DType::kF16), {1, 1, 1, 1, 1});
  b.output("y", conv);
  const StableHlo hlo = to_stablehlo(std::move(b).finish(), DType::kBF16);
  ASSERT_EQ(hlo.arguments.size(), 3u);
  EXPECT_EQ(hlo.arguments[0].input, 0);
  EXPECT_EQ(hlo.arguments[1].weight, "w");
  EXPECT_EQ(hlo.arguments[1].shape, (Shape{3, 3, 4, 6}));
  EXPECT_EQ(hlo.arguments[1].dtype, DType::kBF16);
  EXPECT_EQ(hlo.arguments[2].dtype, DType::kF32);
  EXPECT_THAT(hlo.text, HasSubstr("(tensor<1x8x8x4xbf16>, tensor<3x3x4x6xbf16>) -> tensor<1x8x8x6xbf16>"));
  EXPECT_THAT(hlo.text, HasSubstr("main(%arg0: tensor<1x8x8x4xf32>"));
  EXPECT_THAT(hlo.text, HasSubstr("-> (tensor<1x8x8x6xf32>)"));
}

TEST(StableHloText, AllScoresAtOnceNeverExist) {
  ir::Builder b("attention");
  const Shape shape{2, 4096, 640};
  const ir::Value q = b.input("q", shape), k = b.input("k", shape), v = b.input("v", shape);
  b.output("y", b.attention(q, k, v, {10, 0.125f, false}));
  const std::string text = to_stablehlo(std::move(b).finish(), DType::kBF16).text;
  EXPECT_THAT(text, HasSubstr("tensor<2x10x512x4096xf32>"));
  EXPECT_THAT(text, Not(HasSubstr("4096x4096")));
  EXPECT_EQ(count(text, "stablehlo.exponential"), 8u);
}

TEST(StableHloText, TheGateReadsHalves) {
  ir::Builder b("gate");
  b.output("y", b.geglu(b.input("x", {1, 16, 128})));
  const std::string text = to_stablehlo(std::move(b).finish(), DType::kBF16).text;
  EXPECT_EQ(count(text, "-> tensor<1x16x64xbf16>"), 3u);  // two slices, and what comes out
}

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "sfumato_compile_cache_XXXXXX";  // its own: tests run beside one another
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Cache, GivesBackWhatItWasGivenUnlessThatIsDamaged) {
  const CompileCache cache(folder_);
  const std::string key = CompileCache::key("text", "options", "version");
  EXPECT_NE(key, CompileCache::key("text", "options", "version 2"));
  EXPECT_NE(key, CompileCache::key("texto", "ptions", "version"));
  EXPECT_FALSE(cache.find(key));
  cache.store(key, "program");
  EXPECT_EQ(cache.find(key), "program");
  {
    std::fstream file(folder_ / (key + ".bin"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file << "M";
  }
  EXPECT_FALSE(cache.find(key));
  std::ofstream(folder_ / (key + ".bin")) << "short";
  EXPECT_FALSE(cache.find(key));
}

TEST_F(Cache, IsBounded) {
  const CompileCache cache(folder_, 1000);
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [key, age] : {std::pair{"old", 3}, std::pair{"older", 4}, std::pair{"new", 1}}) {
    cache.store(key, std::string(300, 'x'));
    fs::last_write_time(folder_ / (std::string(key) + ".bin"), now - std::chrono::hours(age));
  }
  cache.store("newest", std::string(300, 'x'));
  EXPECT_TRUE(cache.find("newest") && cache.find("new"));
  EXPECT_FALSE(cache.find("older") || cache.find("old"));
  cache.store("huge", std::string(2000, 'x'));
  EXPECT_FALSE(cache.find("huge"));
  EXPECT_TRUE(cache.find("newest"));
}

TEST_F(Cache, WithoutAFolderIsEmpty) {
  const CompileCache cache{fs::path()};
  cache.store("key", "program");
  EXPECT_FALSE(cache.find("key"));
}

TEST(FindPlugin, TakesPathsNamesAndTheEnvironment) {
  for (const char* name : {"PJRT_PLUGIN_LIBRARY_PATH", "TPU_LIBRARY_PATH"}) unsetenv(name);
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "cpu:/a/cpu.so,tpu:/b/tpu.so", 1);
  EXPECT_EQ(*find_plugin("/x/libtpu.so"), "/x/libtpu.so");
  EXPECT_EQ(*find_plugin("tpu"), "/b/tpu.so");
  EXPECT_EQ(*find_plugin(""), "/a/cpu.so");
  EXPECT_THAT(find_plugin("gpu").error().message, HasSubstr("knows cpu, tpu"));
  setenv("PJRT_PLUGIN_LIBRARY_PATH", "/c/any.so", 1);
  EXPECT_EQ(*find_plugin(""), "/c/any.so");
  unsetenv("PJRT_PLUGIN_LIBRARY_PATH");
  unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  setenv("TPU_LIBRARY_PATH", "/d/libtpu.so", 1);
  EXPECT_EQ(*find_plugin(""), "/d/libtpu.so");
  unsetenv("TPU_LIBRARY_PATH");
}

}  // namespace
}  // namespace sfumato::pjrt
