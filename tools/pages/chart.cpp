#include "tools/pages/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "base/visible.h"

namespace crema {

namespace {

constexpr double width = 720, height = 280;
constexpr double left = 64, right = 32, top = 16, bottom = 44;
constexpr size_t max_points = 500;  // more than the eye can distinguish at this width

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// Steps of 1, 2 or 5 times a power of ten.
std::vector<double> ticks_between(double low, double high, int wanted) {
  const double raw = (high - low) / wanted, power = std::pow(10, std::floor(std::log10(raw)));
  const double unit = raw / power, step = power * (unit <= 1   ? 1
                                                   : unit <= 2 ? 2
                                                   : unit <= 5 ? 5
                                                               : 10);
  std::vector<double> ticks;
  for (double tick = std::ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

class Axis {
 public:
  Axis(double low, double high, double from, double to, bool logarithmic)
      : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {}

  double at(double value) const {
    return from_ + (to_ - from_) * (scaled(value) - scaled(low_)) / (scaled(high_) - scaled(low_));
  }

  std::vector<double> ticks(int wanted) const {
    if (!logarithmic_) return ticks_between(low_, high_, wanted);
    std::vector<double> ticks;
    for (double tick = std::pow(10, std::ceil(std::log10(low_) - 1e-9)); tick <= high_ * 1.0001;
         tick *= 10)
      ticks.push_back(tick);
    return ticks;
  }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }
  double low_, high_, from_, to_;
  bool logarithmic_;
};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// One path; a gap in the values interrupts the line. Where points are few they are also drawn as
// dots, each with its values as a tooltip.
std::string curve(const Series& series, const Axis& x, const Axis& y, size_t index) {
  const size_t step = std::max<size_t>(1, series.points.size() / max_points);
  std::string path, dots;
  bool down = false;
  for (size_t i = 0; i < series.points.size(); ++i) {
    if (i % step != 0 && i + 1 != series.points.size()) continue;
    const auto [at, value] = series.points[i];
    if (!std::isfinite(value)) {
      down = false;
      continue;
    }
    path += cat(down ? "L" : "M", fixed(x.at(at)), " ", fixed(y.at(value)));
    down = true;
    dots +=
        cat("<circle class=\"s", index, "\" cx=\"", fixed(x.at(at)), "\" cy=\"", fixed(y.at(value)),
            "\" r=\"", series.points.size() <= 40 ? "3" : "6", "\"",
            series.points.size() <= 40 ? "" : " opacity=\"0\"", "><title>", html_text(series.name),
            " at ", short_number(at), ": ", short_number(value), "</title></circle>");
  }
  return cat("<path class=\"s", index, "\" d=\"", path, "\"/>", dots);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string short_number(double value) {
  char text[32];
  if (std::floor(value) == value && std::abs(value) < 1e7) {
    std::snprintf(text, sizeof text, "%.0f", value);
    std::string digits = text;
    for (int at = static_cast<int>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
      digits.insert(at, ",");
    return digits;
  }
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string line_chart(const std::string& x_name, double x_end, const std::vector<Series>& series) {
  Range xs, ys;
  xs.add(x_end);
  for (const Series& one : series) {
    for (const auto& [x, y] : one.points) {
      xs.add(x);
      ys.add(y);
    }
  }
  if (ys.empty()) return "<p class=\"note\">No values.</p>";
  if (xs.low == xs.high) xs.high = xs.low + 1;
  const bool logarithmic = ys.low > 0 && ys.high > 100 * ys.low;
  if (logarithmic) {
    ys.low = std::pow(10, std::floor(std::log10(ys.low)));
    ys.high *= 1.1;
  } else {
    const double margin =
        ys.high > ys.low ? 0.05 * (ys.high - ys.low) : std::max(0.5 * std::abs(ys.high), 0.01);
    // Quantities that start at zero keep zero as the lower limit.
    ys.low = ys.low >= 0 && ys.low < 0.3 * ys.high ? 0 : ys.low - margin;
    ys.high += margin;
  }
  const Axis x(xs.low, xs.high, left, width - right, false),
      y(ys.low, ys.high, height - bottom, top, logarithmic);

  std::string svg =
      cat("<div class=\"chart\"><svg viewBox=\"0 0 ", width, " ", height, "\" role=\"img\">");
  for (const double tick : y.ticks(5)) {
    svg +=
        cat("<line class=\"grid\" x1=\"", left, "\" x2=\"", width - right, "\" y1=\"",
            fixed(y.at(tick)), "\" y2=\"", fixed(y.at(tick)), "\"/><text x=\"", left - 8, "\" y=\"",
            fixed(y.at(tick) + 4), "\" text-anchor=\"end\">", short_number(tick), "</text>");
  }
  for (const double tick : x.ticks(6)) {
    svg += cat("<text x=\"", fixed(x.at(tick)), "\" y=\"", height - bottom + 18,
               "\" text-anchor=\"middle\">", short_number(tick), "</text>");
  }
  svg += cat("<line class=\"axis\" x1=\"", left, "\" x2=\"", width - right, "\" y1=\"",
             height - bottom, "\" y2=\"", height - bottom, "\"/><text x=\"",
             (left + width - right) / 2, "\" y=\"", height - 6, "\" text-anchor=\"middle\">",
             html_text(x_name), "</text>");
  if (logarithmic) {
    svg += cat("<text x=\"", width - right, "\" y=\"", top,
               "\" text-anchor=\"end\">logarithmic scale</text>");
  }
  for (size_t i = 0; i < series.size(); ++i) svg += curve(series[i], x, y, i % 4);
  svg += "</svg></div>";
  if (series.size() < 2) return svg;
  std::string legend = "<p class=\"legend\">";
  for (size_t i = 0; i < series.size(); ++i) {
    legend += cat("<span><i class=\"s", i % 4, "\"></i>", html_text(series[i].name), "</span>");
  }
  return legend + "</p>" + svg;
}

}  // namespace crema
