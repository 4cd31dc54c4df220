// Values as bytes, from one rank to another.
#include "solver/test/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "support.h"

namespace crema::tests {
namespace packed_test {

struct Pair {
  int64_t first = 0;
  float second = 0;
};

std::string packed(const std::vector<double>& list) {
  Packer packer;
  packer.add(list, int64_t{-3}, Pair{7, 0.5f}, std::vector<float>(), std::string("a\0b", 3), true);
  return packer.bytes();
}

TEST(Packed, ComesBackAsItWas) {
  const std::string bytes = packed({1.5, -0.0, 1e300});
  Unpacker unpacker(bytes);
  std::vector<double> list;
  int64_t number = 0;
  Pair pair;
  std::vector<float> none = {1};
  std::string text;
  bool flag = false;
  unpacker.get(list, number, pair, none, text);
  unpacker.get(flag);
  unpacker.end();
  EXPECT_EQ(list, (std::vector<double>{1.5, -0.0, 1e300}));
  EXPECT_TRUE(std::signbit(list[1]));
  EXPECT_EQ(number, -3);
  EXPECT_EQ(pair.first, 7);
  EXPECT_EQ(pair.second, 0.5f);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_TRUE(flag);
}

TEST(Packed, IsRefusedWhereItDoesNotFit) {
  const std::string expected = "the ranks do not test the same net";
  const std::string bytes = packed({1, 2, 3});
  for (size_t size = 0; size < 8 + 24; ++size) {
    expect_part(error_of([&] {
                  Unpacker unpacker(std::string_view(bytes).substr(0, size));
                  std::vector<double> list;
                  unpacker.get(list);
                }),
                expected);
  }
  expect_part(error_of([&] {
                Unpacker unpacker(bytes);
                std::vector<double> list;
                unpacker.get(list);
                unpacker.end();
              }),
              expected);
  Packer many;
  many.add(~size_t{0} / 4);
  expect_part(error_of([&] {
                Unpacker unpacker(many.bytes());
                std::vector<double> list;
                unpacker.get(list);
              }),
              expected);
  expect_part(error_of([&] {
                Unpacker unpacker(many.bytes());
                std::string text;
                unpacker.get(text);
              }),
              expected);
}

}  // namespace packed_test
}  // namespace crema::tests
