#include "data/images/sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace crema::tests {
namespace sheet_test {

using Pixel = std::array<int, 3>;

Pixel pixel(const Picture& picture, int x, int y) {
  const uint8_t* at = picture.bytes.data() + (static_cast<size_t>(y) * picture.width + x) * 3;
  return {at[0], at[1], at[2]};
}

Picture plain(int width, int height, uint8_t shade, const std::string& caption = "") {
  return {width, height, 1, std::vector<uint8_t>(static_cast<size_t>(width) * height, shade),
          caption};
}

int dark_pixels(const Picture& sheet, int from_row) {
  int count = 0;
  for (int y = from_row; y < sheet.height; ++y) {
    for (int x = 0; x < sheet.width; ++x) count += pixel(sheet, x, y) == Pixel{0, 0, 0};
  }
  return count;
}

TEST(ContactSheet, EnlargesSmallPicturesAndReducesLargeOnes) {
  const struct {
    int width, height, shown_width, shown_height;
  } rows[] = {{28, 28, 112, 112}, {32, 32, 96, 96},     {100, 50, 100, 50},
              {256, 9, 256, 9},   {300, 200, 150, 100}, {5000, 1, 250, 1}};
  for (const auto& row : rows) {
    const Picture sheet = contact_sheet({{plain(row.width, row.height, 50), {}}});
    EXPECT_EQ(sheet.width, row.shown_width + 12) << row.width;
    EXPECT_EQ(sheet.height, row.shown_height + 12) << row.width;
    EXPECT_EQ(pixel(sheet, 6, 6), (Pixel{50, 50, 50}));
    EXPECT_EQ(pixel(sheet, 5 + row.shown_width, 5 + row.shown_height), (Pixel{50, 50, 50}));
    EXPECT_EQ(pixel(sheet, 6 + row.shown_width, 6), (Pixel{190, 190, 190}));
  }
  EXPECT_EQ(contact_sheet({}).channels, 3);
}

TEST(ContactSheet, ReducesByTheMeanOfEachBlock) {
  Picture stripes{512, 512, 3, {}, ""};
  for (int i = 0; i < 512 * 512; ++i) {
    const auto shade = static_cast<uint8_t>(i % 2 ? 200 : 100);
    stripes.bytes.insert(stripes.bytes.end(), {shade, 10, 20});
  }
  EXPECT_EQ(pixel(contact_sheet({{stripes, {}}}), 20, 20), (Pixel{150, 10, 20}));
}

TEST(ContactSheet, WritesWhatFitsBelow) {
  const Picture sheet = contact_sheet({{plain(112, 112, 255, "1"), {}}});
  // The digit 1 has ten dots, of 2 x 2 pixels each.
  EXPECT_EQ(dark_pixels(sheet, 0), 10 * 4);
  EXPECT_EQ(dark_pixels(sheet, 118), 10 * 4);
  const auto inked = [&](const std::string& caption) {
    return dark_pixels(contact_sheet({{plain(112, 112, 255, caption), {}}}), 118);
  };
  EXPECT_EQ(inked("cat"), inked("CAT"));
  // Smaller letters, of which 18 fit.
  EXPECT_EQ(inked(std::string(15, '1')), 15 * 10);
  EXPECT_EQ(inked(std::string(40, '1')), 16 * 10 + 2 * 4);
  EXPECT_EQ(inked("\x01\xFF"), 0);
}

TEST(ContactSheet, DrawsBoxesInsideThePicture) {
  const auto colored = [](const SheetBox& box) {
    const Picture sheet = contact_sheet({{plain(100, 100, 0), {box}}});
    std::array<int, 4> around = {sheet.width, sheet.height, -1, -1};
    const auto ink = color_of_class(box.label);
    for (int y = 0; y < sheet.height; ++y) {
      for (int x = 0; x < sheet.width; ++x) {
        if (pixel(sheet, x, y) != Pixel{ink[0], ink[1], ink[2]}) continue;
        around = {std::min(around[0], x), std::min(around[1], y), std::max(around[2], x),
                  std::max(around[3], y)};
      }
    }
    return around;
  };
  // The picture begins at (6, 6); a line is two pixels.
  EXPECT_EQ(colored({0.25f, 0.5f, 0.75f, 1, 1, ""}), (std::array<int, 4>{31, 55, 81, 105}));
  EXPECT_EQ(colored({-3, -1, 9, 9, 2, ""}), (std::array<int, 4>{6, 6, 105, 105}));
  EXPECT_EQ(colored({0.5f, 0, 1, 1, 3, "a long caption of the box"}),
            (std::array<int, 4>{55, 6, 105, 105}));
}

TEST(ContactSheet, LaysLabelsOverPixels) {
  Picture picture = plain(2, 2, 100);
  lay_labels_over({0, 1, 255, 2}, picture);
  ASSERT_EQ(picture.channels, 3);
  const auto mixed = [](int label) {
    const auto ink = color_of_class(label);
    return Pixel{(100 + ink[0]) / 2, (100 + ink[1]) / 2, (100 + ink[2]) / 2};
  };
  EXPECT_EQ(pixel(picture, 0, 0), (Pixel{100, 100, 100}));
  EXPECT_EQ(pixel(picture, 1, 0), mixed(1));
  EXPECT_EQ(pixel(picture, 0, 1), (Pixel{177, 177, 177}));
  EXPECT_EQ(pixel(picture, 1, 1), mixed(2));
}

TEST(ContactSheet, GivesNeighbouringClassesColoursThatDiffer) {
  for (int label = -1; label < 20; ++label) {
    const auto one = color_of_class(label), next = color_of_class(label + 1);
    int apart = 0;
    for (size_t c = 0; c < 3; ++c) apart += std::abs(one[c] - next[c]);
    EXPECT_GT(apart, 120) << label;
  }
}

}  // namespace sheet_test
}  // namespace crema::tests
