#include "base/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sfumato {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Numa, ReadsCpuLists) {
  EXPECT_THAT(parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  for (const char* bad : {"", "-1", "3-1", "a", "1-", "1,,2", "0-99999999"})
    EXPECT_THAT(parse_cpu_list(bad), IsEmpty()) << bad;
}

TEST(Numa, EveryProcessHasANode) {
  ASSERT_FALSE(numa_nodes().empty());
  EXPECT_FALSE(numa_nodes()[0].empty());
}

}  // namespace
}  // namespace sfumato
