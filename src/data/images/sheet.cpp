#include "data/images/sheet.h"

#include <algorithm>
#include <cmath>

#include "data/images/letters.h"

namespace crema {
namespace {

using Ink = std::array<uint8_t, 3>;

constexpr int kSeen = 112, kLargest = 256;  // pixels of the longer side, as shown
constexpr int kBetween = 6;                 // pixels between pictures, and around them
constexpr int kSheetWidth = 1200;           // pixels at most, unless one picture needs more
constexpr Ink kSheetGround{190, 190, 190}, kBlack{0, 0, 0}, kWhite{255, 255, 255};

// `from` as shown: red, green and blue, each pixel a block, or the mean of one.
Picture resized(const Picture& from) {
  const int longer = std::max({from.width, from.height, 1});
  const int larger = std::max(1, kSeen / longer);
  const int smaller = (longer + kLargest - 1) / kLargest;
  Picture shown;
  shown.channels = 3;
  shown.width = std::max(1, from.width * larger / smaller);
  shown.height = std::max(1, from.height * larger / smaller);
  shown.bytes.reserve(static_cast<size_t>(shown.width) * shown.height * 3);
  for (int y = 0; y < shown.height; ++y) {
    for (int x = 0; x < shown.width; ++x) {
      const int top = y * smaller / larger, left = x * smaller / larger;
      const int bottom = std::min(top + smaller, from.height),
                right = std::min(left + smaller, from.width);
      for (int c = 0; c < 3; ++c) {
        int sum = 0;
        for (int row = top; row < bottom; ++row) {
          for (int column = left; column < right; ++column) {
            sum += from.bytes[(static_cast<size_t>(row) * from.width + column) * from.channels +
                              (from.channels == 3 ? c : 0)];
          }
        }
        const int count = (bottom - top) * (right - left);
        shown.bytes.push_back(static_cast<uint8_t>((sum + count / 2) / std::max(1, count)));
      }
    }
  }
  return shown;
}

class Sheet {
 public:
  Sheet(int width, int height) {
    picture_.width = width;
    picture_.height = height;
    picture_.channels = 3;
    for (int64_t i = 0; i < int64_t{width} * height; ++i)
      picture_.bytes.insert(picture_.bytes.end(), kSheetGround.begin(), kSheetGround.end());
  }
  Picture& picture() { return picture_; }

  void fill(int left, int top, int width, int height, const Ink& ink) {
    for (int y = std::max(0, top); y < std::min(top + height, picture_.height); ++y) {
      for (int x = std::max(0, left); x < std::min(left + width, picture_.width); ++x)
        std::copy(ink.begin(), ink.end(), at(x, y));
    }
  }

  void place(int left, int top, const Picture& picture) {
    for (int y = 0; y < picture.height; ++y) {
      std::copy_n(picture.bytes.begin() + static_cast<int64_t>(y) * picture.width * 3,
                  picture.width * 3, at(left, top + y));
    }
  }

  // No wider than `width`: a text that is longer ends in two dots.
  void write(int left, int top, int width, std::string text, int pen, const Ink& ink) {
    const auto room = static_cast<size_t>(std::max(0, (width + pen) / (kLetterStep * pen)));
    if (text.size() > room)
      text = text.substr(0, room < 3 ? room : room - 2) + (room < 3 ? "" : "..");
    for (const char letter : text) {
      const uint8_t* const rows = letter_rows(letter);
      for (int y = 0; rows && y < kLetterHeight; ++y) {
        for (int x = 0; x < kLetterWidth; ++x) {
          if (rows[y] >> (kLetterWidth - 1 - x) & 1)
            fill(left + x * pen, top + y * pen, pen, pen, ink);
        }
      }
      left += kLetterStep * pen;
    }
  }

  // Inside of a picture that is shown at (x, y), with its caption in the corner.
  void box(int x, int y, const Picture& shown, const SheetBox& box) {
    const auto place = [](float share, int extent) {
      if (!(share > 0)) return 0;  // NaN, too
      return static_cast<int>(std::lround(std::min(share, 1.0f) * static_cast<float>(extent)));
    };
    constexpr int kLine = 2;
    const Ink ink = color_of_class(box.label);
    const int left = x + place(box.left, shown.width - kLine),
              right = x + place(box.right, shown.width - kLine),
              top = y + place(box.top, shown.height - kLine),
              bottom = y + place(box.bottom, shown.height - kLine);
    fill(left, top, right - left + kLine, kLine, ink);
    fill(left, bottom, right - left + kLine, kLine, ink);
    fill(left, top, kLine, bottom - top + kLine, ink);
    fill(right, top, kLine, bottom - top + kLine, ink);
    constexpr int kHeight = kLetterHeight + 4;
    if (box.caption.empty() || kHeight > shown.height) return;
    // Above the box if there is room.
    const int line = std::clamp(top - kHeight, y, y + shown.height - kHeight);
    const int width =
        std::min(x + shown.width - left, static_cast<int>(box.caption.size()) * kLetterStep + 3);
    fill(left, line, width, kHeight, ink);
    const int light = ink[0] * 3 + ink[1] * 6 + ink[2];
    write(left + 2, line + 2, width - 2, box.caption, 1, light > 1280 ? kBlack : kWhite);
  }

 private:
  std::vector<uint8_t>::iterator at(int x, int y) {
    return picture_.bytes.begin() + (static_cast<int64_t>(y) * picture_.width + x) * 3;
  }

  Picture picture_;
};

}  // namespace

std::array<uint8_t, 3> color_of_class(int label) {
  // Hues a golden section apart, every third one darker.
  const float turns = 0.618034f * static_cast<float>(label) - 0.08f;
  const float hue = 6 * (turns - std::floor(turns));
  const float light = label % 3 == 2 ? 170.0f : 240.0f;
  Ink ink{};
  for (int c = 0; c < 3; ++c) {
    const float apart = std::abs(std::fmod(hue - 2.0f * static_cast<float>(c) + 6.0f, 6.0f) - 3.0f);
    ink[static_cast<size_t>(c)] =
        static_cast<uint8_t>(light * std::clamp(apart - 1.0f, 0.0f, 1.0f));
  }
  return ink;
}

void lay_labels_over(const std::vector<int>& labels, Picture& picture) {
  constexpr int kIgnored = 255;
  if (picture.channels == 1) {
    std::vector<uint8_t> colored;
    for (const uint8_t grey : picture.bytes) colored.insert(colored.end(), 3, grey);
    picture.bytes = std::move(colored);
    picture.channels = 3;
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == 0) continue;
    const Ink ink = labels[i] == kIgnored ? kWhite : color_of_class(labels[i]);
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& value = picture.bytes[i * 3 + c];
      value = static_cast<uint8_t>((value + ink[c]) / 2);
    }
  }
}

Picture contact_sheet(const std::vector<SheetCell>& cells) {
  std::vector<Picture> shown;
  int width = 1, height = 1;
  for (const SheetCell& cell : cells) {
    shown.push_back(resized(cell.picture));
    width = std::max(width, shown.back().width);
    height = std::max(height, shown.back().height);
  }
  const bool captions = std::any_of(cells.begin(), cells.end(), [](const SheetCell& cell) {
    return !cell.picture.caption.empty();
  });
  const auto fits = [&](const SheetCell& cell) {
    return static_cast<int>(cell.picture.caption.size()) * kLetterStep * 2 <= width;
  };
  const int pen = std::all_of(cells.begin(), cells.end(), fits) ? 2 : 1;
  const int line = captions ? kLetterHeight * pen + kBetween : 0;
  const int count = static_cast<int>(cells.size());
  const int columns =
      std::clamp((kSheetWidth - kBetween) / (width + kBetween), 1, std::max(1, count));
  const int rows = (count + columns - 1) / columns;
  Sheet sheet(kBetween + columns * (width + kBetween),
              kBetween + rows * (height + line + kBetween));
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int left = kBetween + i % columns * (width + kBetween),
              top = kBetween + i / columns * (height + line + kBetween);
    sheet.place(left, top, shown[at]);
    for (const SheetBox& box : cells[at].boxes) sheet.box(left, top, shown[at], box);
    sheet.write(left, top + shown[at].height + 3, width, cells[at].picture.caption, pen, kBlack);
  }
  return std::move(sheet.picture());
}

}  // namespace crema
