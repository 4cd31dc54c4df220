#include "base/registry.h"

#include <gtest/gtest.h>

namespace crema {
namespace registry_test {

struct RulesTag {};
struct OtherTag {};
using Rules = Registry<RulesTag, int (*)(int)>;
using Other = Registry<OtherTag, int (*)(int)>;

const bool registered = Rules::add("twice", [](int x) { return 2 * x; });

TEST(RegistryTest, IsFilledBeforeMain) {
  ASSERT_TRUE(registered);
  ASSERT_TRUE(Rules::has("twice"));
  EXPECT_EQ((*Rules::find("twice"))(21), 42);
}

TEST(RegistryTest, UnknownNamesAreNull) {
  EXPECT_EQ(Rules::find("thrice"), nullptr);
  EXPECT_FALSE(Rules::has(""));
}

TEST(RegistryTest, TablesAreApartAndSorted) {
  Rules::add("negate", [](int x) { return -x; });
  EXPECT_EQ(Rules::names(), (std::vector<std::string>{"negate", "twice"}));
  EXPECT_TRUE(Other::names().empty());
}

}  // namespace registry_test
}  // namespace crema
