// WordReader: reads the words and lines of a text file, for lists with multi-line entries.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/exact_label.h"
#include "data/images/pixel_limits.h"

namespace crema {

// Errors name PATH:LINE, the line of the last word.
class WordReader {
 public:
  explicit WordReader(std::string path) : path_(std::move(path)), text_(read_text(path_)) {}

  // Skips blanks; true when nothing follows.
  bool at_end() {
    while (at_ < text_.size() && blank(text_[at_])) line_ += text_[at_++] == '\n';
    return at_ == text_.size();
  }
  std::string_view word(const char* what) { return take(what, false); }
  std::string_view rest_of_line(const char* what) { return trim(take(what, true)); }
  template <typename T>
  T number(const char* what) {
    const std::string_view found = word(what);
    T value{};
    const auto [end, problem] = std::from_chars(found.data(), found.data() + found.size(), value);
    bool good = problem == std::errc() && end == found.data() + found.size();
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
    if (!good) wrong(cat("found `", found, "` where ", what, " was expected"));
    return value;
  }
  // A coordinate of a box, in pixels.
  template <typename T>
  T corner(const char* what) {
    const T at = number<T>(what);
    if (!is_pixel(static_cast<double>(at)))
      wrong(cat(what, " is ", at, ", farther out than any image reaches"));
    return at;
  }
  // A class that a blob can represent exactly.
  int label(const char* what) {
    const int label = number<int>(what);
    try {
      exact_label(label);
    } catch (const Error& problem) {
      wrong(problem.what());
    }
    return label;
  }
  int64_t line() const { return line_; }
  [[noreturn]] void wrong(const std::string& problem) const {
    fail(path_, ":", line_, ": ", problem);
  }

 private:
  static bool blank(char letter) {
    return std::string_view(" \t\r\n").find(letter) != std::string_view::npos;
  }
  std::string_view take(const char* what, bool whole_line) {
    if (at_end()) wrong(cat("the file ends where ", what, " was expected"));
    const size_t first = at_;
    while (at_ < text_.size() && text_[at_] != '\n' && (whole_line || !blank(text_[at_]))) ++at_;
    return std::string_view(text_).substr(first, at_ - first);
  }

  std::string path_, text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace crema
