// WindowFile: the window files of R-CNN, which list images, and for each image boxes with the class
// of the object that they overlap.
//   # INDEX
//   PATH
//   COUNT PATH ...             in files with masks: how many the image has, and their paths
//   CHANNELS HEIGHT WIDTH      of the image
//   COUNT                      of the boxes that follow
//   CLASS OVERLAP X1 Y1 X2 Y2  inclusive corners, in pixels
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct ListedWindowImage {
  int64_t line = 0;  // of the path
  std::string path;
  std::vector<std::string> masks;
  int64_t channels = 0, height = 0, width = 0;
};

struct ListedWindow {
  int64_t image = 0, line = 0;
  int label = 0;
  int64_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

struct WindowFile {
  std::vector<ListedWindowImage> images;
  std::vector<ListedWindow> objects, background;
  std::vector<ListedWindow> in_order;  // replaces the other two
};

// How to read a file.
struct WindowRules {
  // From the first overlap up a window shows an object, below the second background, of class 0.
  float object_overlap = 0.5f, background_overlap = 0.5f;
  bool masks = false;  // each image has some, and all have the same number
  // Windows are not sorted into objects and background, which would drop those in between: all are
  // kept, in the list's order.
  bool in_order = false;
};

// Error names PATH:LINE.
WindowFile read_window_file(const std::string& path, const WindowRules& rules);

}  // namespace crema
