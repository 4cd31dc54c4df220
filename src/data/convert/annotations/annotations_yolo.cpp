#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/annotations.h"

namespace crema {
namespace {

constexpr const char* kForm = "`class x y width height`, shares of the image from 0 to 1";
constexpr double kRounded = 1e-3;  // as far beyond the image as programs that round may be

struct FoundWord {
  std::string_view text;
  size_t column = 0;  // from 1
};

std::vector<FoundWord> words_in(std::string_view line) {
  constexpr const char* blanks = " \t\r";
  std::vector<FoundWord> words;
  for (size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back({line.substr(at, end - at), at + 1});
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

template <typename T>
bool reads(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

// images/a.jpg -> labels/a.txt: the last folder of that name is another, and so is the extension.
std::string text_beside(const std::string& image) {
  std::string path = image;
  const std::string from = "images/";
  size_t at = path.rfind("/" + from);
  at = at != std::string::npos ? at + 1 : starts_with(path, from) ? 0 : std::string::npos;
  if (at != std::string::npos) path.replace(at, from.size(), "labels/");
  const size_t name = path.rfind('/') + 1, dot = path.rfind('.');
  if (dot != std::string::npos && dot > name) path.resize(dot);
  return path + ".txt";
}

class YoloAnnotations : public Annotations {
 public:
  YoloAnnotations(const std::string& root, std::vector<ListedImage> images,
                  const ClassNumbers& labels)
      : root_(root), labels_(labels) {
    images_ = std::move(images);
  }

  void annotate(const ListedImage& image, const ConvertedImage&, AnnotatedDatum& record,
                Log& log) const override {
    if (image.label_path.empty()) return;
    const std::string path = root_ + image.label_path;
    size_t line = 0;
    for (const std::string& text : split(read_text(path), '\n')) {
      ++line;
      const std::vector<FoundWord> words = words_in(text);
      if (!words.empty()) add(cat(path, ":", line), words, record, log);
    }
  }

 private:
  void add(const std::string& where, const std::vector<FoundWord>& words, AnnotatedDatum& record,
           Log& log) const {
    int number = 0;
    const auto problem = [&](size_t word, const auto&... parts) {
      fail(where, ":", words[word].column, ": ", parts...);
    };
    if (!reads(words[0].text, number) || number < 0 || number == INT32_MAX)
      problem(0, "found `", words[0].text, "` where the number of a class was expected, from 0");
    if (words.size() > 6 && words.size() % 2 == 1)
      problem(5, "the line goes on, as the outline of an object does; a box is ", kForm);
    if (words.size() != 5)
      problem(words.size() > 5 ? 5 : words.size() - 1, "a line has 5 numbers, ", kForm, ", not ",
              words.size());
    double share[4] = {};
    for (size_t i = 0; i < 4; ++i) {
      const std::string_view text = words[i + 1].text;
      if (!reads(text, share[i]) || !(share[i] >= -kRounded && share[i] <= 1 + kRounded))
        problem(i + 1, "found `", text, "`; a line is ", kForm);
    }
    const std::string* name = labels_.name_of(number + 1);
    if (!name)
      problem(
          0, "class ", number, " is label ", number + 1,
          ", which the label map lacks; create_label_map counts from 1, as 0 is the background");
    const auto [x, y, width, height] = share;
    const Corners corners{x - width / 2, y - height / 2, x + width / 2, y + height / 2};
    add_object(record, number + 1, *name, corners, false, where, log);
  }

  std::string root_;
  const ClassNumbers& labels_;
};

}  // namespace

std::vector<ListedImage> read_yolo_list(const std::string& root, const std::string& list,
                                        Log& log) {
  std::vector<ListedImage> images;
  size_t line = 0, without = 0;
  std::string missing;
  for (const std::string& text : split(read_text(list == "-" ? "/dev/stdin" : list), '\n')) {
    ++line;
    const std::vector<FoundWord> words = words_in(text);
    if (words.empty()) continue;
    if (words.size() > 2)
      fail(list, ":", line, ":", words[2].column, ": a line is `image` or `image text`, not `",
           trim(text), "`");
    ListedImage image;
    image.line = static_cast<int64_t>(line);
    image.path = words[0].text;
    if (words.size() == 2) {
      image.label_path = words[1].text;
    } else {
      image.label_path = text_beside(image.path);
      if (!file_exists(root + image.label_path)) {
        if (without++ == 0) missing = root + image.label_path;
        image.label_path.clear();
      }
    }
    images.push_back(std::move(image));
  }
  require(!images.empty(), list, ": names no image; a line is `image` or `image text`");
  if (without == images.size())
    fail(list, ": not one of its ", without, " images has a text of boxes; there is no ", missing,
         " either. Or give the texts: a line is `image text`");
  if (without > 0)
    log.warning(cat(without, " of ", images.size(), " images have no text of boxes, such as ",
                    missing, "; they have no object."));
  return images;
}

std::unique_ptr<Annotations> yolo_annotations(const std::string& root,
                                              std::vector<ListedImage> images,
                                              const ClassNumbers& labels) {
  return std::make_unique<YoloAnnotations>(root, std::move(images), labels);
}

}  // namespace crema
