#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>

#include "base/aligned.h"
#include "base/cpu.h"
#include "base/mapped_file.h"
#include "base/strings.h"

namespace sfumato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Cpu, QuotaOfACgroup) {
  EXPECT_EQ(parse_cpu_quota("400000 100000"), 4);
  EXPECT_EQ(parse_cpu_quota("150000 100000"), 2);
  EXPECT_EQ(parse_cpu_quota("max 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota(""), std::nullopt);
}

TEST(Cpu, OneAllowedProcessorIsOneThread) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(default_threads(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Cpu, IsaNamesRoundTripAndForceDown) {
  for (Isa isa : kAllIsas) EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  EXPECT_EQ(parse_isa("sse9"), std::nullopt);
  const Isa before = active_isa();
  set_active_isa(Isa::kScalar);
  EXPECT_EQ(active_isa(), Isa::kScalar);
  set_active_isa(Isa::kAmx);
  EXPECT_EQ(active_isa(), machine_isa());
  set_active_isa(before);
}

TEST(Cpu, AnUnknownIsaInTheEnvironmentIsAnError) {
  setenv("SFUMATO_MAX_ISA", "sse9", 1);
  const Result<void> result = check_isa_environment();
  unsetenv("SFUMATO_MAX_ISA");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(result.error().message,
              HasSubstr("expected one of scalar, avx2, avx512, avx512_bf16, avx512_fp16, amx, got \"sse9\""));
}

TEST(MappedFile, ReadsAndNamesWhatItCannot) {
  const std::string path = testing::TempDir() + "/mapped_file_test";
  std::ofstream(path) << "abc";
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->bytes().size(), 3u);
  EXPECT_EQ((*file)->bytes()[1], std::byte{'b'});
  EXPECT_THAT(MappedFile::open(path + ".no").error().message, HasSubstr(".no\": No such file"));
  EXPECT_THAT(MappedFile::open(testing::TempDir()).error().message, HasSubstr("not a regular file"));
  EXPECT_EQ(MappedFile::open(path + ".no").error().kind, ErrorKind::kBadInput);
}

TEST(MappedFileDeathTest, ATruncatedMappingSaysSo) {
  const std::string path = testing::TempDir() + "/truncated_file_test";
  std::ofstream(path) << std::string(100000, 'x');
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EXIT(
      {
        install_sigbus_message();
        if (truncate(path.c_str(), 0) != 0) _exit(99);
        volatile std::byte last = (*file)->bytes()[99999];
        (void)last;
      },
      testing::ExitedWithCode(3), "truncated or became unreadable");
}

TEST(Strings, SplitTrimJoin) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(join(std::vector<int>{1, 2}, ", "), "1, 2");
  EXPECT_EQ(lowercase_ascii("DPM++ 2M"), "dpm++ 2m");
}

TEST(Aligned, LargeAndHopelessRequests) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned_array<float>(3).get()) % 64, 0u);
  EXPECT_EQ(aligned_alloc_bytes(SIZE_MAX - 100), nullptr);
}

Result<int> half_of(int x) {
  return x % 2 ? Result<int>(usage_error("odd")) : Result<int>(x / 2);
}
Result<int> quarter_of(int x) {
  const int half = TRY(half_of(x));
  return half_of(half);
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).error().message, "odd");
}

}  // namespace
}  // namespace sfumato
