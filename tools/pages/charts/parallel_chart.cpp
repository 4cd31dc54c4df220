#include "tools/pages/charts/parallel_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/drawing/net_box_text.h"
#include "tools/pages/drawing/net_style.h"

namespace crema {

namespace {

constexpr double kWidth = 1072, kHeight = 300, kSide = 70, kTop = 44, kBottom = 22,
                 kTickHeight = 14;
constexpr size_t kMostTicks = 6;

// The place of each value of an axis, 0 at the bottom to 1 at the top.
class ParallelScale {
 public:
  explicit ParallelScale(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      if (!value.empty() && std::find(words_.begin(), words_.end(), value) == words_.end())
        words_.push_back(value);
    }
    double number = 0;
    numeric_ = std::all_of(words_.begin(), words_.end(),
                           [&](const std::string& word) { return read(word, &number); });
    if (!numeric_ || words_.empty()) return;
    std::sort(words_.begin(), words_.end(), [](const std::string& a, const std::string& b) {
      return std::strtod(a.c_str(), nullptr) < std::strtod(b.c_str(), nullptr);
    });
    read(words_.front(), &low_);
    read(words_.back(), &high_);
    logarithmic_ = low_ > 0 && high_ / 10 > low_;
  }

  double at(const std::string& value) const {
    if (words_.size() == 1) return 0.5;
    if (!numeric_) {
      const auto place = std::find(words_.begin(), words_.end(), value) - words_.begin();
      return static_cast<double>(place) / static_cast<double>(words_.size() - 1);
    }
    if (low_ == high_) return 0.5;  // one number, written in several ways
    double number = 0;
    read(value, &number);
    return static_cast<double>((scaled(number) - scaled(low_)) / (scaled(high_) - scaled(low_)));
  }

  // The values themselves, as far as there is room for them.
  std::vector<std::string> ticks() const {
    if (words_.size() <= kMostTicks) return words_;
    std::vector<std::string> some;
    for (size_t i = 0; i < kMostTicks; ++i)
      some.push_back(words_[i * (words_.size() - 1) / (kMostTicks - 1)]);
    return some;
  }

  std::string text(const std::string& value) const {
    double number = 0;
    return numeric_ && read(value, &number) ? short_number(number) : shortened(value, 16);
  }

 private:
  static bool read(const std::string& text, double* number) {
    char* end = nullptr;
    *number = std::strtod(text.c_str(), &end);
    return !text.empty() && end == text.c_str() + text.size() && std::isfinite(*number);
  }
  // The difference of two doubles may be larger than any double.
  long double scaled(long double value) const { return logarithmic_ ? std::log10(value) : value; }

  std::vector<std::string> words_;
  bool numeric_ = false, logarithmic_ = false;
  double low_ = 0, high_ = 1;
};

std::string middle_text(const char* css, double x, double y, const std::string& text) {
  return cat("<text class=\"", css, "\" text-anchor=\"middle\" x=\"", svg_number(x), "\" y=\"",
             svg_number(y), "\">", html_text(text), "</text>");
}

}  // namespace

std::string parallel_chart(const std::vector<std::string>& names,
                           const std::vector<ParallelAxis>& axes) {
  std::vector<ParallelScale> scales;
  for (const ParallelAxis& axis : axes) scales.emplace_back(axis.values);
  const double step =
      axes.size() > 1 ? (kWidth - 2 * kSide) / static_cast<double>(axes.size() - 1) : 0;
  const auto x = [&](size_t axis) { return kSide + step * static_cast<double>(axis); };
  const auto y = [&](double share) {
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  };
  std::string frame, lines, ticks;
  for (size_t a = 0; a < axes.size(); ++a) {
    // Titles of narrow axes take turns in height.
    frame +=
        middle_text("name", x(a), step < 150 && a % 2 == 1 ? 30 : 15, shortened(axes[a].name, 26));
    frame += cat("<line x1=\"", svg_number(x(a)), "\" x2=\"", svg_number(x(a)), "\" y1=\"",
                 svg_number(y(1)), "\" y2=\"", svg_number(y(0)), "\"/>");
    // If there is no room for all, the ends come first.
    std::vector<std::string> wanted = scales[a].ticks();
    if (wanted.size() > 2) std::rotate(wanted.begin() + 1, wanted.end() - 1, wanted.end());
    std::vector<double> taken;
    for (const std::string& tick : wanted) {
      const double at = y(scales[a].at(tick));
      if (std::any_of(taken.begin(), taken.end(),
                      [&](double other) { return std::abs(at - other) < kTickHeight; }))
        continue;
      taken.push_back(at);
      ticks += cat("<text class=\"tick\" x=\"", svg_number(x(a) + 6), "\" y=\"", svg_number(at + 4),
                   "\">", html_text(scales[a].text(tick)), "</text>");
    }
  }
  for (size_t run = 0; run < names.size(); ++run) {
    std::string path, told = html_text(names[run]);
    bool down = false;
    for (size_t a = 0; a < axes.size(); ++a) {
      const std::string& value = axes[a].values[run];
      if (!value.empty()) {
        path += cat(down ? "L" : "M", svg_number(x(a)), " ", svg_number(y(scales[a].at(value))));
        told += "\n" + html_text(cat(axes[a].name, " ", value));
      }
      down = !value.empty();
    }
    lines += cat("<path class=\"", colour_class(static_cast<int>(run)), "\" d=\"", path,
                 "\"><title>", told, "</title></path>");
  }
  return cat("<div class=\"wide\"><svg class=\"parallel\" role=\"img\" viewBox=\"0 0 ",
             svg_number(kWidth), " ", svg_number(kHeight), "\">", frame, lines, ticks,
             "</svg></div>");
}

}  // namespace crema
