#include "tools/classify/class_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

constexpr int64_t kFive = 5, kFewClasses = 10;
constexpr size_t kWidestName = 24;  // that others are padded to

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string percent(int64_t part, int64_t whole) {
  return cat(static_cast<double>(part) / static_cast<double>(whole), " (", part, " of ", whole,
             ")");
}

}  // namespace

ClassReport::ClassReport(int64_t classes, std::vector<std::string> names, int64_t top,
                         const std::string& csv)
    : classes_(classes), shown_(std::min(top, classes)), names_(std::move(names)), csv_(csv) {
  for (const std::string& name : names_)
    name_width_ = std::max(name_width_, std::min(visible(name).size(), kWidestName) + 2);
  if (names_.empty()) name_width_ = std::to_string(classes - 1).size();
}

void ClassReport::add(const std::string& image, std::optional<int64_t> label, const float* scores) {
  require(std::all_of(scores, scores + classes_, [](float score) { return std::isfinite(score); }),
          image,
          ": the scores are not finite: the weights contain nan or inf, or the net computes them");
  std::vector<int64_t> best(static_cast<size_t>(classes_));
  std::iota(best.begin(), best.end(), 0);
  std::partial_sort(best.begin(), best.begin() + shown_, best.end(), [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  ++images_;
  if (label && classes_ > 1) {  // a single score is no choice between classes
    // As the Accuracy layer counts: a class with the same score is as good.
    const auto reaching = std::count_if(scores, scores + classes_,
                                        [&](float score) { return score >= scores[*label]; });
    ++labelled_;
    right_ += reaching == 1;
    among_five_ += reaching <= kFive;
  }
  best.resize(static_cast<size_t>(shown_));
  if (csv_.empty()) {
    print(image, best, scores);
  } else {
    put_row(image, label, best, scores);
  }
}

void ClassReport::print(const std::string& image, const std::vector<int64_t>& best,
                        const float* scores) const {
  std::string line = padded(visible(image), width_);
  for (const int64_t index : best) {
    char score[32];
    std::snprintf(score, sizeof score, "  %.4f ", scores[index]);
    const std::string name =
        names_.empty() ? std::to_string(index) : cat('"', visible(names_[index]), '"');
    line += score + padded(name, index == best.back() ? 0 : name_width_);
  }
  std::cout << line << "\n";
}

void ClassReport::put_row(const std::string& image, std::optional<int64_t> label,
                          const std::vector<int64_t>& best, const float* scores) {
  rows_ += csv_field(image);
  for (const int64_t index : best) {
    char score[32];
    std::snprintf(score, sizeof score, "%.9g", scores[index]);
    rows_ += cat(',', index, ',', names_.empty() ? "" : csv_field(names_[index]), ',', score);
  }
  rows_ += "," + (label ? std::to_string(*label) : std::string()) + "\n";
}

std::string ClassReport::csv_head() const {
  std::string head = "path";
  for (int64_t i = 1; i <= shown_; ++i) head += cat(",class", i, ",name", i, ",score", i);
  return head + ",label\n";
}

void ClassReport::finish(ProgramLog& log) const {
  std::cout << std::flush;
  if (!csv_.empty() && images_ > 0) {
    write_file_atomically(csv_, csv_head() + rows_);
    log.info("Wrote " + csv_);
  }
  if (labelled_ == 0) return;
  log.answer("accuracy = " + percent(right_, labelled_));
  if (classes_ > kFewClasses) log.answer("top-5 accuracy = " + percent(among_five_, labelled_));
}

}  // namespace crema
