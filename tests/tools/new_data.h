// Data for the tests of crema new.
#pragma once

#include <string>
#include <vector>

#include "data/images/image.h"
#include "tools/program.h"

#ifdef CREMA_OPENCV
#define NEEDS_PICTURES() static_cast<void>(0)
#else
#define NEEDS_PICTURES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace new_test {

// A picture whose left or upper half is dark; no two are equal.
inline std::string picture(int kind, int number, int side = 24, bool gray = false) {
  Image image{gray ? 1 : 3, side, side, {}};
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool dark = (kind == 0 ? x : kind == 1 ? y : x + y < side ? 0 : side) < side / 2;
      for (int c = 0; c < image.channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((dark ? 30 : 200) + (number * 7 + x * c) % 50));
    }
  }
  image.pixels[0] = static_cast<uint8_t>(number);
  return encode_image(image, "png");
}

inline void add_classes(const Folder& folder, const std::string& top, int of_each,
                        bool gray = false) {
  for (int i = 0; i < of_each; ++i) {
    folder.write(cat(top, "/left/a ", i, ", b.png"), picture(0, i, 24, gray));
    folder.write(cat(top, "/upper/", i, ".png"), picture(1, i, 24, gray));
  }
}

inline void expect_parts(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& part : parts) expect_part(outcome.out, part);
}

}  // namespace new_test
}  // namespace crema::tests
