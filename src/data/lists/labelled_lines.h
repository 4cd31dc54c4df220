// LabelledLines: splits the lines of a list of images into paths and numbers: `path label label`, or
// CSV, `path,label,label`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

struct LabelWord {
  std::string word;
  double value = 0;
};

// A word that is a number. One too large for a double becomes infinite; `inf` and `nan` are not
// numbers.
std::optional<double> number_in(std::string_view word);

// The last word of a line, and what precedes it.
struct LastWord {
  std::string_view word, rest;
  explicit LastWord(std::string_view line);
};

// All lines have as many labels as the first.
class LabelledLines {
 public:
  // It is CSV if the first line has a comma and the name ends in .csv, or if the first line that can
  // be read is `path,label` and not `path label`; then the first line may have the names of the
  // columns.
  LabelledLines(const std::string& list, std::string_view text);

  enum class Kind { wrong, names, labelled };
  // `line`: without blanks at its end. Error names WHERE, which is LIST:LINE.
  Kind take(std::string_view line, const std::string& where, std::string& path,
            std::vector<LabelWord>& labels);
  bool csv() const { return csv_; }

 private:
  bool take_words(std::string_view line, std::string& path, std::vector<LabelWord>& labels) const;
  bool take_fields(std::string_view line, const std::string& where, std::string& path,
                   std::vector<LabelWord>& labels) const;

  bool csv_ = false, first_ = true;
  size_t labels_ = 0;  // labels in the first line; 0: not read yet
};

}  // namespace crema
