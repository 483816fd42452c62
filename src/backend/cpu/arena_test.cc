#include "backend/cpu/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace sfumato::cpu {
namespace {

TEST(Arena, ValuesThatLiveApartShareMemory) {
  const ArenaPlan plan = plan_arena({{640, 0, 1}, {640, 1, 2}, {640, 2, 3}});
  EXPECT_EQ(plan.bytes, 1280u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

TEST(Arena, ValuesThatLiveTogetherNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lives(40);
    for (Lifetime& life : lives) {
      life.bytes = random() % 5000;
      life.first = static_cast<int>(random() % 50);
      life.last = life.first + static_cast<int>(random() % 10);
    }
    const ArenaPlan plan = plan_arena(lives);
    for (size_t a = 0; a < lives.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0u);
      EXPECT_LE(plan.offsets[a] + lives[a].bytes, plan.bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool in_time = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool in_space =
            plan.offsets[a] < plan.offsets[b] + lives[b].bytes && plan.offsets[b] < plan.offsets[a] + lives[a].bytes;
        EXPECT_FALSE(in_time && in_space) << a << " and " << b;
      }
    }
  }
}

TEST(Arena, GrowsAndKeepsItsSize) {
  Arena arena;
  ASSERT_NE(arena.reserve(1000), nullptr);
  std::byte* at = arena.reserve(500);
  EXPECT_EQ(arena.bytes(), 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u);
}

}  // namespace
}  // namespace sfumato::cpu
