// Lists of image files: text files with a line for each sample. Blank lines are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crema {

struct ListedImage {
  int64_t line;  // counted from 1
  std::string path;
  std::vector<float> labels;
  std::string label_path;  // of the label image, in lists of pairs
};

// Lines `path label`, or `path label label ...` with as many labels on every line as on the first:
// the path ends with the last word that is not a number, and may have blanks in it. Error names
// LIST:LINE.
std::vector<ListedImage> read_labelled_list(const std::string& list);

// Lines `path path`, of an image and its label image.
std::vector<ListedImage> read_pair_list(const std::string& list);

// Lines `image boxes`: a text file of numbers x1 y1 x2 y2 class, for each object, found by `find`.
// Labels are these numbers, of as many objects as the image with most has, with -1 for those that
// are not there. Error names the file.
std::vector<ListedImage> read_boxed_list(
    const std::string& list, const std::function<std::string(const std::string& path)>& find);

// Lines `path`; what follows a blank is left alone.
std::vector<ListedImage> read_path_list(const std::string& list);

}  // namespace crema
