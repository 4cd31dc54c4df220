#include "data/lists/image_list.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/exact_label.h"
#include "data/databases/given_file.h"
#include "data/lists/labelled_lines.h"
#include "data/lists/word_reader.h"

namespace crema {
namespace {

constexpr const char* kBlanks = " \t";

std::string line_prefix(const std::string& list, const ListedImage& image) {
  return cat(list, ":", image.line, ": ");
}

// "-" is the standard input.
std::string text_of(const std::string& list) {
  const FileKind kind = list == "-" ? FileKind() : kind_of(list);
  require(may_be_list(kind), list, ": is not a list of files, one a line", what_it_is(kind));
  return read_text(list == "-" ? "/dev/stdin" : list);
}

// Passes every line that is not blank to `take`, without trailing blanks.
template <typename Take>
std::vector<ListedImage> read_lines(const std::string& list, const std::string& all,
                                    const char* form, const Take& take) {
  using Kind = LabelledLines::Kind;
  std::vector<ListedImage> images;
  int64_t number = 0;
  for (const std::string& text : split(all, '\n')) {
    ++number;
    const std::string_view bare = trim(text);
    if (bare.empty()) continue;
    const auto end = static_cast<size_t>(bare.data() + bare.size() - text.data());
    ListedImage image;
    image.line = number;
    const Kind kind = take(std::string_view(text).substr(0, end), image);
    if (kind == Kind::wrong)
      fail(line_prefix(list, image), "a line is ", form, ", not `", bare, "`");
    if (kind == Kind::labelled) images.push_back(std::move(image));
  }
  require(!images.empty(), list, ": names no image; a line is ", form);
  return images;
}

template <typename Take>
std::vector<ListedImage> read_list(const std::string& list, const char* form, const Take& take) {
  return read_lines(list, text_of(list), form, [&](std::string_view line, ListedImage& image) {
    return take(line, image) ? LabelledLines::Kind::labelled : LabelledLines::Kind::wrong;
  });
}

// Passes the labels of each line to `keep`.
template <typename Keep>
std::vector<ListedImage> read_labels(const std::string& list, const Keep& keep) {
  const std::string text = text_of(list);
  LabelledLines lines(list, text);
  std::vector<LabelWord> words;
  const char* const form =
      lines.csv() ? "`path,label` with a number as label" : "`path label` with a number as label";
  return read_lines(list, text, form, [&](std::string_view line, ListedImage& image) {
    const LabelledLines::Kind kind =
        lines.take(line, cat(list, ":", image.line), image.path, words);
    if (kind == LabelledLines::Kind::labelled) keep(image, words);
    return kind;
  });
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

bool fits_class(double label) {
  return label == std::trunc(label) && label >= INT32_MIN && label <= INT32_MAX;
}

}  // namespace

std::vector<ListedImage> read_labelled_list(const std::string& list) {
  return read_labels(list, [&](ListedImage& image, const std::vector<LabelWord>& words) {
    for (const LabelWord& label : words)
      image.labels.push_back(blob_label(line_prefix(list, image), label.word, label.value));
  });
}

std::vector<ListedImage> read_class_list(const std::string& list) {
  bool one_each = true, integers = true;  // of the first labels
  std::vector<ListedImage> images =
      read_labels(list, [&](ListedImage& image, const std::vector<LabelWord>& words) {
        const bool integer = fits_class(words[0].value);
        if (integer) image.class_number = static_cast<int32_t>(words[0].value);
        integers = integers && integer;
        one_each = one_each && words.size() == 1;
        // A class is kept to its last digit; whether all are classes is known after the last line.
        if (words.size() == 1 && integer) return;
        for (const LabelWord& label : words)
          image.labels.push_back(blob_label(line_prefix(list, image), label.word, label.value));
      });
  if (one_each && integers) return images;
  for (ListedImage& image : images) {
    try {
      if (image.labels.empty()) image.labels = {exact_label(image.class_number)};
    } catch (const Error& problem) {
      fail(line_prefix(list, image), problem.what());
    }
    if (!integers) image.class_number = 0;
  }
  return images;
}

std::vector<ListedImage> read_image_list(const std::string& list) {
  const auto take = [&](std::string_view line, ListedImage& image) {
    for (LastWord last(line); !trim(last.rest).empty(); last = LastWord(line)) {
      const std::optional<double> label = number_in(last.word);
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
