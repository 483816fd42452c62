#include "weights/random_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/half.h"

namespace sfumato {
namespace {

class RandomWeightsTest : public testing::Test {
 protected:
  std::string write(const std::string& text) const {
    const std::string path = testing::TempDir() + "shapes_" + std::to_string(getpid());
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(RandomWeightsTest, HasTheListedTensors) {
  const auto weights = RandomWeights::open(write("a.weight 64x32x3x3\na.bias 64\n\nnorm.weight 64\n")).value();
  EXPECT_THAT(weights->names(), testing::ElementsAre("a.bias", "a.weight", "norm.weight"));
  const TensorView w = *weights->find("a.weight");
  EXPECT_EQ(w.shape, (Shape{64, 32, 3, 3}));
  EXPECT_EQ(w.dtype, DType::kF16);
  double squares = 0;
  for (int64_t i = 0; i < w.shape.elements(); ++i) {
    const double x = f16_to_f32(static_cast<const uint16_t*>(w.data)[i]);
    squares += x * x;
  }
  const double fan_in = 32 * 9;
  EXPECT_NEAR(squares / static_cast<double>(w.shape.elements()) * fan_in, 1, 0.1);
  EXPECT_EQ(f16_to_f32(*static_cast<const uint16_t*>(weights->find("a.bias")->data)), 0);
  EXPECT_EQ(f16_to_f32(*static_cast<const uint16_t*>(weights->find("norm.weight")->data)), 1);
  EXPECT_FALSE(weights->find("b"));
}

TEST_F(RandomWeightsTest, AreTheSameEachTime) {
  const std::string path = write("a 40x30\n");
  const auto one = RandomWeights::open(path).value(), two = RandomWeights::open(path).value();
  EXPECT_EQ(memcmp(one->find("a")->data, two->find("a")->data, 40 * 30 * 2), 0);
}

TEST_F(RandomWeightsTest, BadListsAreErrors) {
  for (const char* text : {"a", "a 3x", "a 0", "a -3", "a 3x99999999999", "a 100000x100000x100000", "a 3 4", "a x"})
    EXPECT_EQ(RandomWeights::open(write(text)).error().kind, ErrorKind::kBadInput) << text;
  EXPECT_EQ(RandomWeights::open("/nowhere").error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace sfumato
