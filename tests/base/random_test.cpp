#include "base/random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace crema {
namespace random_test {

void expect_words(const Random& random, uint64_t index, const std::vector<uint32_t>& words) {
  const Random::Four four = random.four(index);
  EXPECT_EQ(std::vector<uint32_t>(four.v, four.v + 4), words);
}

// The known answers that come with the authors' library (Random123) for philox4x32-10.
TEST(RandomTest, MatchesPublishedValues) {
  expect_words({0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_words({~0ull, ~0ull}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words({0x299f31d0a4093822ull, 0x0370734413198a2eull}, 0x85a308d3243f6a88ull,
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(RandomTest, ANumberDependsOnSeedStreamAndIndexOnly) {
  const Random a{5, 6}, same{5, 6}, other_seed{7, 6}, other_stream{5, 7};
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(a.word(99 - i), same.word(99 - i));
    EXPECT_NE(a.word64(i), other_seed.word64(i));
    EXPECT_NE(a.word64(i), other_stream.word64(i));
  }
}

TEST(RandomTest, WordsOfOneDrawAreTheWordsInOrder) {
  const Random random{3, 4};
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(random.word(i), random.four(i / 4).v[i % 4]);
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0, neighbours = 0;
};

template <typename Draw>
Moments moments(int count, const Draw& draw) {
  Moments m;
  for (int i = 0; i < count; ++i) m.mean += draw(i) / count;
  for (int i = 0; i < count; ++i) {
    const double d = draw(i) - m.mean;
    m.variance += d * d / count;
    m.fourth += d * d * d * d / count;
    m.neighbours += d * (draw(i + 1) - m.mean) / count;
  }
  return m;
}

// Bounds are five standard errors of a fair generator.
TEST(RandomTest, UniformNumbersAreUniform) {
  const Random random{1, 2};
  const int count = 200000;
  const Moments m = moments(count, [&](int i) { return random.uniform(i); });
  const double error = 5 / std::sqrt(count);
  EXPECT_NEAR(m.mean, 0.5, 0.29 * error);
  EXPECT_NEAR(m.variance, 1.0 / 12, 0.075 * error);
  EXPECT_NEAR(m.neighbours, 0, 0.084 * error);
  for (int i = 0; i < count; ++i) ASSERT_TRUE(random.uniform(i) >= 0 && random.uniform(i) < 1);
}

TEST(RandomTest, NormalNumbersAreNormal) {
  const Random random{1, 3};
  const int count = 200000;
  const Moments m = moments(count, [&](int i) { return random.normal(i); });
  const double error = 5 / std::sqrt(count);
  EXPECT_NEAR(m.mean, 0, error);
  EXPECT_NEAR(m.variance, 1, 1.42 * error);
  EXPECT_NEAR(m.fourth, 3, 9.8 * error);
  EXPECT_NEAR(m.neighbours, 0, error);
}

TEST(RandomTest, MixedStreamsDiffer) {
  std::set<uint64_t> streams;
  for (uint64_t layer = 0; layer < 100; ++layer) {
    for (uint64_t pass = 0; pass < 100; ++pass) streams.insert(mix(layer, pass));
  }
  EXPECT_EQ(streams.size(), 10000u);
  EXPECT_NE(mix(1, 2), mix(2, 1));
}

}  // namespace random_test
}  // namespace crema
