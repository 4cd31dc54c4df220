// FlagsOf: the struct of the flags that a verb takes.
#include "tools/flags/flags_of.h"

#include <gtest/gtest.h>

namespace crema::tests {
namespace flags_of_test {

using Small = FlagsOf<"model", "iterations">;
using Large = FlagsOf<"set", "iterations", "epoch", "max_pixels", "start_lr", "model">;

// Code that reads a flag that is not in the list does not compile, nor does a call with fewer flags
// than the function takes.
template <typename Flags>
concept HasEpoch = requires(Flags flags) {
  flags.epoch;
};
static_assert(HasEpoch<Large> && !HasEpoch<Small>);
static_assert(std::convertible_to<Large, Small> && !std::convertible_to<Small, Large>);

TEST(FlagsOf, HasTheFlagsDefaults) {
  const Large flags;
  EXPECT_EQ(flags.set, std::vector<std::string>());
  EXPECT_EQ(flags.iterations, 50);
  EXPECT_FALSE(flags.epoch);
  EXPECT_EQ(flags.max_pixels, 268435456);
  EXPECT_EQ(flags.start_lr, 1e-6);
  EXPECT_EQ(flags.model, "");
  EXPECT_FALSE(flags.iterations_given);
}

TEST(FlagsOf, TakesGivenValuesOfEveryType) {
  const Large flags(FlagValues{{"set", {"a=1", "b=2"}},
                               {"iterations", {"50"}},
                               {"epoch", {"true"}},
                               {"max_pixels", {"5000000000"}},
                               {"start_lr", {"0.10000000000000001"}},
                               {"model", {"net.prototxt"}},
                               {"gpu", {"0"}}});
  EXPECT_EQ(flags.set, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(flags.iterations, 50);
  EXPECT_TRUE(flags.iterations_given);
  EXPECT_TRUE(flags.epoch);
  EXPECT_EQ(flags.max_pixels, 5000000000);
  EXPECT_EQ(flags.start_lr, 0.1);
  EXPECT_EQ(flags.model, "net.prototxt");
}

TEST(FlagsOf, PassesValuesOn) {
  const Large large(FlagValues{{"iterations", {"7"}}, {"epoch", {"true"}}});
  const Small small = large;
  EXPECT_EQ(small.iterations, 7);
  EXPECT_TRUE(small.iterations_given);
  const auto larger = FlagsOf<"iterations", "epoch">::without<"epoch">(small);
  EXPECT_EQ(larger.iterations, 7);
  EXPECT_FALSE(larger.epoch);
}

TEST(FlagsOf, ListsItsFlagsInOrder) {
  EXPECT_EQ(Large::list(), (std::vector<std::string>{"set", "iterations", "epoch", "max_pixels",
                                                     "start_lr", "model"}));
}

}  // namespace flags_of_test
}  // namespace crema::tests
