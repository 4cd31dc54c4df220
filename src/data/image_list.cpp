#include "data/image_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/files.h"

namespace crema {
namespace {

constexpr const char* kBlanks = " \t";

// Hands every line that is not blank to `take`.
template <typename Take>
std::vector<ListedImage> read_list(const std::string& list, const char* form, const Take& take) {
  std::vector<ListedImage> images;
  int64_t number = 0;
  for (const std::string& text : split(read_file(list), '\n')) {
    ++number;
    const std::string_view line = trim(text);
    if (line.empty()) continue;
    ListedImage image{number, "", {}, ""};
    if (!take(line, image)) fail(list, ":", number, ": a line is ", form, ", not `", line, "`");
    images.push_back(std::move(image));
  }
  require(!images.empty(), list, ": names no image; a line is ", form);
  return images;
}

std::optional<float> number_of(std::string_view word) {
  float value = 0;
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size()) return {};
  return value;
}

}  // namespace

std::vector<ListedImage> read_labelled_list(const std::string& list) {
  size_t labels = 0;  // of the first line
  const auto take = [&](std::string_view line, ListedImage& image) {
    while (labels == 0 || image.labels.size() < labels) {
      const size_t blank = line.find_last_of(kBlanks);
      if (blank == std::string_view::npos) break;
      const std::optional<float> label = number_of(line.substr(blank + 1));
      if (!label) break;
      image.labels.insert(image.labels.begin(), *label);
      line = trim(line.substr(0, blank));
    }
    image.path = line;
    if (!image.labels.empty() && labels > image.labels.size()) {
      fail(list, ":", image.line, ": has ", image.labels.size(), " labels, but the first line has ",
           labels);
    }
    labels = image.labels.size();
    return labels > 0;
  };
  return read_list(list, "`path label` with a number as label", take);
}

std::vector<ListedImage> read_pair_list(const std::string& list) {
  return read_list(list, "`path path`, an image and its label image, neither with a blank",
                   [](std::string_view line, ListedImage& image) {
                     const size_t blank = line.find_first_of(kBlanks);
                     if (blank == std::string_view::npos) return false;
                     image.path = line.substr(0, blank);
                     image.label_path = trim(line.substr(blank));
                     return image.label_path.find_first_of(kBlanks) == std::string::npos;
                   });
}

std::vector<ListedImage> read_boxed_list(
    const std::string& list, const std::function<std::string(const std::string& path)>& find) {
  constexpr size_t kNumbers = 5;  // of an object
  std::vector<ListedImage> images = read_pair_list(list);
  size_t most = 0;
  for (ListedImage& image : images) {
    const std::string boxes = find(image.label_path);
    std::string text = read_file(boxes);
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; }, ' ');
    for (const std::string& word : split(text, ' ')) {
      if (word.empty()) continue;
      const std::optional<float> number = number_of(word);
      require(number.has_value(), boxes, ": `", word,
              "` is no number; a file of boxes has x1 y1 "
              "x2 y2 class for each object");
      // Whole pixels, as its program reads them.
      image.labels.push_back(std::trunc(*number));
    }
    require(image.labels.size() % kNumbers == 0, boxes, ": has ", image.labels.size(),
            " numbers, but each object needs ", kNumbers, ": x1 y1 x2 y2 class");
    most = std::max(most, image.labels.size());
  }
  require(most > 0, list, ": not one of its ", images.size(), " images has an object");
  for (ListedImage& image : images) image.labels.resize(most, -1);
  return images;
}

std::vector<ListedImage> read_path_list(const std::string& list) {
  return read_list(list, "`path`", [](std::string_view line, ListedImage& image) {
    image.path = line.substr(0, line.find_first_of(kBlanks));
    return true;
  });
}

}  // namespace crema
