// Lists of image files: text files with a line for each sample. Blank lines are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crema {

struct ListedImage {
  int64_t line = 0;  // counted from 1
  std::string path;  // with the blanks before it: as_listed() says whether they belong to it
  std::vector<float> labels;
  int32_t class_number = 0;  // of lists of classes
  std::string label_path;    // of the label image, in lists of pairs
};

// Lines `path label`, or `path label label ...` with as many labels on every line as on the first:
// the path ends with the last word that is not a number, and may have blanks in it. Labels are any
// numbers; integers are ones that a float32 holds. Error names LIST:LINE.
std::vector<ListedImage> read_labelled_list(const std::string& list);

// The same with one integer of 32 bits as label, `class_number`.
std::vector<ListedImage> read_class_list(const std::string& list);

// The path below `root`, or there beside `folder` unless that is empty (find_file): with the blanks
// before it where such a file is there, as Caffe reads lists, else without.
std::string as_listed(const std::string& path, const std::string& root, const std::string& folder);

// Lines `path path`, of an image and its label image.
std::vector<ListedImage> read_pair_list(const std::string& list);

// Lines `image boxes`: a text file of numbers x1 y1 x2 y2 class, for each object, found by `find`.
// Labels are these numbers, of as many objects as the image with most has, with -1 for those that
// are not there. Error names FILE:LINE.
std::vector<ListedImage> read_boxed_list(
    const std::string& list, const std::function<std::string(const std::string& path)>& find);

// Lines `path`; what follows a blank is left alone.
std::vector<ListedImage> read_path_list(const std::string& list);

}  // namespace crema
