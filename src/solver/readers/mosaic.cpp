#include "solver/readers/mosaic.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace crema {
namespace {

constexpr int kSeen = 64;         // pixels that the longer side of a picture should have
constexpr int kGap = 4;           // between pictures, and around them
constexpr uint8_t kGround = 170;  // grey, so that white pixels have an edge
constexpr int kPen = 2, kLetterWidth = 4 * kPen, kLineHeight = 7 * kPen;

// Five rows of three pixels, the left one is 4.
struct Letter {
  char letter;
  int rows[5];
};
constexpr Letter kLetters[] = {
    {'0', {7, 5, 5, 5, 7}}, {'1', {2, 6, 2, 2, 7}}, {'2', {7, 1, 7, 4, 7}}, {'3', {7, 1, 7, 1, 7}},
    {'4', {5, 5, 7, 1, 1}}, {'5', {7, 4, 7, 1, 7}}, {'6', {7, 4, 7, 5, 7}}, {'7', {7, 1, 1, 2, 2}},
    {'8', {7, 5, 7, 5, 7}}, {'9', {7, 5, 7, 1, 7}}, {'>', {4, 2, 1, 2, 4}}, {'-', {0, 0, 7, 0, 0}},
    {'.', {0, 0, 0, 0, 2}}, {'%', {5, 1, 2, 4, 5}}};

class Canvas {
 public:
  Canvas(int width, int height, int channels) {
    picture_.width = width;
    picture_.height = height;
    picture_.channels = channels;
    picture_.bytes.assign(static_cast<size_t>(width) * height * channels, kGround);
  }

  // A block of `size` x `size` pixels; one grey value serves all channels.
  void block(int x, int y, int size, const uint8_t* pixel, int channels) {
    for (int row = y; row < y + size; ++row) {
      for (int column = x; column < x + size; ++column) {
        uint8_t* at =
            &picture_
                 .bytes[(static_cast<size_t>(row) * picture_.width + column) * picture_.channels];
        for (int c = 0; c < picture_.channels; ++c) at[c] = pixel[channels == 1 ? 0 : c];
      }
    }
  }

  void picture(int x, int y, int factor, const Picture& one) {
    const uint8_t* pixel = one.bytes.data();
    for (int row = 0; row < one.height; ++row) {
      for (int column = 0; column < one.width; ++column, pixel += one.channels)
        block(x + column * factor, y + row * factor, factor, pixel, one.channels);
    }
  }

  void text(int x, int y, const std::string& text) {
    const uint8_t ink = 0;
    for (const char letter : text) {
      for (const Letter& known : kLetters) {
        if (known.letter != letter) continue;
        for (int row = 0; row < 5; ++row) {
          for (int column = 0; column < 3; ++column) {
            if (known.rows[row] >> (2 - column) & 1)
              block(x + column * kPen, y + row * kPen, kPen, &ink, 1);
          }
        }
      }
      x += kLetterWidth;
    }
  }

  Picture take() { return std::move(picture_); }

 private:
  Picture picture_;
};

}  // namespace

Picture mosaic_of(const std::vector<Picture>& pictures) {
  int width = 1, height = 1, channels = 1, letters = 0;
  for (const Picture& one : pictures) {
    width = std::max(width, one.width);
    height = std::max(height, one.height);
    channels = std::max(channels, one.channels);
    letters = std::max(letters, static_cast<int>(one.caption.size()));
  }
  const int longer = std::max(width, height), factor = std::max(1, (kSeen + longer - 1) / longer);
  const int across = std::max(width * factor, letters * kLetterWidth) + kGap;
  const int down = height * factor + (letters > 0 ? kGap + kLineHeight : 0) + kGap;
  const int count = static_cast<int>(pictures.size());
  const int columns = std::max(1, static_cast<int>(std::ceil(std::sqrt(count))));
  const int rows = (count + columns - 1) / columns;
  Canvas canvas(columns * across + kGap, rows * down + kGap, channels);
  for (int i = 0; i < count; ++i) {
    const int x = kGap + i % columns * across, y = kGap + i / columns * down;
    canvas.picture(x, y, factor, pictures[i]);
    canvas.text(x, y + height * factor + kGap, pictures[i].caption);
  }
  return canvas.take();
}

}  // namespace crema
