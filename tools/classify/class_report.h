// ClassReport: the best classes of images, as lines on stdout or as a CSV file, and how often they
// are right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/console/program_log.h"

namespace crema {

class ClassReport {
 public:
  // Shows the best `top` classes. `csv`: a file to write instead of the lines.
  ClassReport(int64_t classes, std::vector<std::string> names, int64_t top, const std::string& csv);

  // `width` of the column with the images' names.
  void begin(size_t width) { width_ = width; }
  // One image; `label`, if known, is one of the classes. Error when scores are not finite.
  void add(const std::string& image, std::optional<int64_t> label, const float* scores);
  // Writes the file, and logs the accuracy if labels are known.
  void finish(ProgramLog& log) const;

 private:
  void print(const std::string& image, const std::vector<int64_t>& best, const float* scores) const;
  void put_row(const std::string& image, std::optional<int64_t> label,
               const std::vector<int64_t>& best, const float* scores);
  std::string csv_head() const;

  const int64_t classes_, shown_;
  const std::vector<std::string> names_;
  const std::string csv_;
  std::string rows_;
  size_t width_ = 0, name_width_ = 0;
  int64_t images_ = 0, labelled_ = 0, right_ = 0, among_five_ = 0;
};

}  // namespace crema
