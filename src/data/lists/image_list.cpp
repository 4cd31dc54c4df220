#include "data/lists/image_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/exact_label.h"
#include "data/lists/word_reader.h"

namespace crema {
namespace {

constexpr const char* kBlanks = " \t";

std::string line_prefix(const std::string& list, const ListedImage& image) {
  return cat(list, ":", image.line, ": ");
}

// Passes every line that is not blank to `take`, without trailing blanks.
template <typename Take>
std::vector<ListedImage> read_list(const std::string& list, const char* form, const Take& take) {
  std::vector<ListedImage> images;
  int64_t number = 0;
  for (const std::string& text : split(read_text(list), '\n')) {
    ++number;
    const std::string_view bare = trim(text);
    if (bare.empty()) continue;
    const auto end = static_cast<size_t>(bare.data() + bare.size() - text.data());
    ListedImage image;
    image.line = number;
    if (!take(std::string_view(text).substr(0, end), image))
      fail(line_prefix(list, image), "a line is ", form, ", not `", bare, "`");
    images.push_back(std::move(image));
  }
  require(!images.empty(), list, ": names no image; a line is ", form);
  return images;
}

// A word that is a number. One too large for a double becomes infinite; `inf` and `nan` are not
// numbers.
std::optional<double> number_of(std::string_view word) {
  double value = 0;
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || word.empty()) return {};
  if (problem == std::errc::result_out_of_range) return HUGE_VAL;
  if (problem != std::errc() || !std::isfinite(value)) return {};
  return value;
}

// The label as stored in a blob. A word written as an integer must be exact; other numbers are
// rounded.
float blob_label(const std::string& where, std::string_view word, double value) {
  const bool integer = word.find_first_not_of("+-0123456789") == std::string_view::npos;
  const auto label = static_cast<float>(value);
  require(std::isfinite(label), where, "the label ", word, " is beyond the numbers of a float32");
  if (!integer) return label;
  require(std::abs(value) <= INT32_MAX, where, "the label ", word,
          " is beyond the integers of 32 bits");
  try {
    return exact_label(static_cast<int64_t>(value));
  } catch (const Error& problem) {
    fail(where, problem.what());
  }
}

// The last word of a line, and what precedes it.
struct LastWord {
  std::string_view word, rest;
  explicit LastWord(std::string_view line) {
    const size_t blank = line.find_last_of(kBlanks);
    if (blank == std::string_view::npos) return;
    word = line.substr(blank + 1);
    rest = line.substr(0, line.find_last_not_of(kBlanks, blank) + 1);
  }
};

}  // namespace

std::vector<ListedImage> read_labelled_list(const std::string& list) {
  size_t labels = 0;  // of the first line
  const auto take = [&](std::string_view line, ListedImage& image) {
    while (labels == 0 || image.labels.size() < labels) {
      const LastWord last(line);
      const std::optional<double> label = number_of(last.word);
      if (!label || last.rest.empty()) break;
      image.labels.insert(image.labels.begin(),
                          blob_label(line_prefix(list, image), last.word, *label));
      line = last.rest;
    }
    image.path = line;
    if (!image.labels.empty() && labels > image.labels.size()) {
      fail(line_prefix(list, image), "has ", image.labels.size(),
           " labels, but the first line has ", labels);
    }
    labels = image.labels.size();
    return labels > 0;
  };
  return read_list(list, "`path label` with a number as label", take);
}

std::vector<ListedImage> read_class_list(const std::string& list) {
  constexpr const char* kOnly =
      "; a database holds one integer for each image, ImageData reads lists of other numbers";
  const auto take = [&](std::string_view line, ListedImage& image) {
    const LastWord last(line);
    const std::optional<double> label = number_of(last.word);
    if (!label || last.rest.empty()) return false;
    if (number_of(LastWord(last.rest).word))
      fail(line_prefix(list, image), "has several labels", kOnly);
    if (*label != std::trunc(*label) || *label < INT32_MIN || *label > INT32_MAX) {
      fail(line_prefix(list, image), "the label ", last.word, " is not an integer of 32 bits",
           kOnly);
    }
    image.path = last.rest;
    image.class_number = static_cast<int32_t>(*label);
    return true;
  };
  return read_list(list, "`path label` with an integer as label", take);
}

std::vector<ListedImage> read_image_list(const std::string& list) {
  const auto take = [&](std::string_view line, ListedImage& image) {
    for (LastWord last(line); !trim(last.rest).empty(); last = LastWord(line)) {
      const std::optional<double> label = number_of(last.word);
      if (!label) break;
      image.labels.insert(image.labels.begin(),
                          blob_label(line_prefix(list, image), last.word, *label));
      line = last.rest;
    }
    image.path = line;
    return true;
  };
  return read_list(list, "`path` or `path label`", take);
}

std::string as_listed(const std::string& path, const std::string& root, const std::string& folder) {
  std::string bare(trim(path));
  if (bare.size() == path.size() || file_exists(find_file(root + path, folder))) return path;
  return bare;
}

std::vector<ListedImage> read_pair_list(const std::string& list) {
  return read_list(list, "`path path`, an image and its label image, neither with a blank",
                   [](std::string_view line, ListedImage& image) {
                     line = trim(line);
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
  size_t maximum = 0;
  for (ListedImage& image : images) {
    WordReader reader(find(image.label_path));
    while (!reader.at_end()) {
      const bool is_class = image.labels.size() % kNumbers == kNumbers - 1;
      // Whole pixels, as the original program reads them.
      image.labels.push_back(is_class ? static_cast<float>(reader.label("the class of a box"))
                                      : std::trunc(reader.corner<float>("a corner of a box")));
    }
    if (image.labels.size() % kNumbers != 0) {
      reader.wrong(cat("the file has ", image.labels.size(), " numbers, but each object needs ",
                       kNumbers, ": x1 y1 x2 y2 class"));
    }
    maximum = std::max(maximum, image.labels.size());
  }
  require(maximum > 0, list, ": not one of its ", images.size(), " images has an object");
  for (ListedImage& image : images) image.labels.resize(maximum, -1);
  return images;
}

std::vector<ListedImage> read_path_list(const std::string& list) {
  return read_list(list, "`path`", [](std::string_view line, ListedImage& image) {
    line = trim(line);
    image.path = line.substr(0, line.find_first_of(kBlanks));
    return true;
  });
}

}  // namespace crema
