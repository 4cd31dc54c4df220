// Lists of image files: text files with one line per sample; "-" is the standard input. Blank lines
// are ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crema {

struct ListedImage {
  int64_t line = 0;  // counted from 1
  std::string path;  // with leading blanks: as_listed() decides whether they belong to it
  std::vector<float> labels;
  int32_t class_number = 0;  // of read_class_list()
  std::string label_path;    // for the label image, in lists of pairs
};

// Lines `path label`, or `path label label ...` with as many labels on every line as on the first:
// the path ends with the last word that is not a number, and may contain blanks. Labels are any
// numbers; integers must be exact in a float32. Or CSV, `path,label,label` with or without a line
// of names (data/lists/labelled_lines.h). Error names LIST:LINE.
std::vector<ListedImage> read_labelled_list(const std::string& list);

// The same for a database. If each line has one label, an integer of 32 bits, it is `class_number`,
// and there are no `labels`. Otherwise `class_number` is the first of the labels, if those are
// integers.
std::vector<ListedImage> read_class_list(const std::string& list);

// Lines `path`, followed by any number of labels, which may differ between lines, or none: for
// images to classify.
std::vector<ListedImage> read_image_list(const std::string& list);

// The path under `root`, also looked up relative to `folder` unless that is empty (find_file): with
// its leading blanks if such a file exists, as Caffe reads lists, otherwise without.
std::string as_listed(const std::string& path, const std::string& root, const std::string& folder);

// Lines `path path`, of an image and its label image.
std::vector<ListedImage> read_pair_list(const std::string& list);

// Lines `image boxes`: `boxes` is a text file with the numbers x1 y1 x2 y2 class for each object,
// found by `find`. Labels are these numbers, padded with -1 to the largest number of objects in any
// image. Error names FILE:LINE.
std::vector<ListedImage> read_boxed_list(
    const std::string& list, const std::function<std::string(const std::string& path)>& find);

// Lines `path`; what follows a blank is ignored.
std::vector<ListedImage> read_path_list(const std::string& list);

}  // namespace crema
