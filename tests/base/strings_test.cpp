#include "base/strings.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace crema {
namespace strings_test {

using Words = std::vector<std::string>;

TEST(StringsTest, CatShowsPartsAsStreamsDo) {
  EXPECT_EQ(cat("blob ", 3, " is ", 2.5, '!', std::string("x")), "blob 3 is 2.5!x");
}

TEST(StringsTest, CatGivesWhatIsNotANumberNoSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(cat(-nan, " ", static_cast<float>(-nan), " ", nan), "nan nan nan");
  EXPECT_EQ(cat(-inf, " ", static_cast<float>(inf)), "-inf inf");
}

TEST(StringsTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,b,,c", ','), (Words{"a", "b", "", "c"}));
  EXPECT_EQ(split("a,", ','), (Words{"a", ""}));
  EXPECT_EQ(split("abc", ','), (Words{"abc"}));
  EXPECT_EQ(split("", ','), Words());
}

TEST(StringsTest, JoinIsTheInverse) {
  EXPECT_EQ(join({"a", "", "c"}, ", "), "a, , c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(StringsTest, SizesHaveTheUnitThatSuits) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(size_text(size_t{12} << 30), "12.0 GiB");
}

TEST(StringsTest, TrimTakesBlanksFromBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(StringsTest, StartsAndEnds) {
  EXPECT_TRUE(starts_with("conv1/7x7", "conv1"));
  EXPECT_FALSE(starts_with("conv", "conv1"));
  EXPECT_TRUE(ends_with("a.solverstate.h5", ".h5"));
  EXPECT_FALSE(ends_with("h5", ".h5"));
}

TEST(StringsTest, EditDistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("pool", "pool"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("Poling", "Pooling"), 1);    // insert
  EXPECT_EQ(edit_distance("Poooling", "Pooling"), 1);  // delete
  EXPECT_EQ(edit_distance("Pualing", "Pooling"), 2);   // replace
  EXPECT_EQ(edit_distance("Splti", "Split"), 1);       // swap of neighbours
  EXPECT_EQ(edit_distance("relu", "ReLU"), 1.5);       // case counts half
  EXPECT_EQ(edit_distance("kitten", "sitting"), edit_distance("sitting", "kitten"));
}

TEST(StringsTest, DidYouMeanNamesTheNearest) {
  const Words types = {"ReLU", "PReLU", "Pooling", "Convolution", "InnerProduct"};
  EXPECT_EQ(did_you_mean("Relu", types), " (did you mean \"ReLU\"?)");
  EXPECT_EQ(did_you_mean("CONVOLUTION", types), " (did you mean \"Convolution\"?)");
  EXPECT_EQ(did_you_mean("Convolutoin", types), " (did you mean \"Convolution\"?)");
  EXPECT_EQ(did_you_mean("Softmax", types), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

// A table of all edits would take 8 TB for two of these.
TEST(StringsTest, DidYouMeanLeavesLongNamesAlone) {
  const std::string million(1000000, 'x');
  EXPECT_EQ(did_you_mean(million, {million + "y", "x"}), "");
  EXPECT_EQ(did_you_mean("ReLu", {million, "ReLU"}), " (did you mean \"ReLU\"?)");
}

TEST(ErrorTest, RequireThrowsTheWholeMessage) {
  EXPECT_NO_THROW(require(true, "never built"));
  try {
    require(false, "top_k is ", 7, ", but there are ", 3);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "top_k is 7, but there are 3");
  }
}

}  // namespace strings_test
}  // namespace crema
