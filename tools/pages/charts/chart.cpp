#include "tools/pages/charts/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/strings.h"
#include "base/visible.h"
#include "tools/pages/charts/ticks.h"

namespace crema {

namespace {

// Lines are drawn in a box of this size that is stretched to the room there is; texts and the width
// of lines are not. The height is also that of the style sheet, in pixels.
constexpr double box_width = 1000, box_height = 240;
constexpr size_t parts_of_a_curve = 500;  // each gives up to two points
constexpr size_t few_points = 60;         // in a chart: drawn as dots, too

using Points = std::vector<std::pair<double, double>>;

std::string digits(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string coordinate(double value) { return digits(value, "%.1f"); }

class Axis {
 public:
  Axis(double low, double high, double from, double to, bool logarithmic)
      : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {}

  double at(double value) const {
    return static_cast<double>(from_ + (to_ - from_) * (scaled(value) - scaled(low_)) /
                                           (scaled(high_) - scaled(low_)));
  }

  std::vector<double> ticks(int wanted) const {
    return logarithmic_ ? log_ticks(low_, high_, wanted) : linear_ticks(low_, high_, wanted);
  }

 private:
  // The difference of two doubles may be larger than any double.
  long double scaled(long double value) const { return logarithmic_ ? std::log10(value) : value; }
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

// The points to draw: the lowest and the highest point and the first gap in each part of a long
// series, so that no peak is lost, and the last.
std::vector<size_t> thinned(const Points& points) {
  std::vector<size_t> kept;
  if (points.size() <= 2 * parts_of_a_curve) {
    for (size_t i = 0; i < points.size(); ++i) kept.push_back(i);
    return kept;
  }
  for (size_t part = 0; part < parts_of_a_curve; ++part) {
    const size_t from = part * points.size() / parts_of_a_curve,
                 to = (part + 1) * points.size() / parts_of_a_curve;
    size_t low = to, high = to, gap = to;
    for (size_t i = from; i < to; ++i) {
      const double value = points[i].second;
      if (!std::isfinite(value)) {
        if (gap == to) gap = i;
        continue;
      }
      if (low == to || value < points[low].second) low = i;
      if (high == to || value > points[high].second) high = i;
    }
    std::vector<size_t> chosen = {low, high, gap};
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const size_t i : chosen) {
      if (i < to) kept.push_back(i);
    }
  }
  if (kept.back() != points.size() - 1 && std::isfinite(points.back().second))
    kept.push_back(points.size() - 1);
  return kept;
}

// "M0.0 3.1L8.0 2.5": a gap in the values interrupts it.
std::string path_of(const Points& points, const Axis& x, const Axis& y) {
  std::string path;
  bool down = false;
  for (const size_t i : thinned(points)) {
    const auto& [at, value] = points[i];
    if (std::isfinite(value))
      path += cat(down ? "L" : "M", coordinate(x.at(at)), " ", coordinate(y.at(value)));
    down = std::isfinite(value);
  }
  return path;
}

// A line, its values for the script, and dots if there are few points: lines of no length, which
// stay round however the box is stretched. A gap has the value "-", which is not a number.
std::string curve(const Series& series, const Axis& x, const Axis& y, int colour, bool dotted) {
  std::string values, seconds, dots;
  for (const size_t i : thinned(series.points)) {
    const auto& [at, value] = series.points[i];
    const bool drawn = std::isfinite(value);
    const char* apart = values.empty() ? "" : " ";
    values += cat(apart, digits(at, "%.10g"), ",", drawn ? digits(value, "%.5g") : "-");
    if (i < series.seconds.size()) seconds += cat(apart, digits(series.seconds[i], "%.6g"));
    if (dotted && drawn) dots += cat("M", coordinate(x.at(at)), " ", coordinate(y.at(value)), "h0");
  }
  const std::string classes = colour_class(colour);
  return cat("<path class=\"curve ", classes, "\" d=\"", path_of(series.points, x, y),
             "\" data-name=\"", html_text(series.name), "\" data-points=\"", values, "\"",
             seconds.empty() ? "" : cat(" data-seconds=\"", seconds, "\""),
             series.epoch > 0 ? cat(" data-epoch=\"", digits(series.epoch, "%.10g"), "\"") : "",
             "/>",
             dots.empty() ? "" : cat("<path class=\"dots ", classes, "\" d=\"", dots, "\"/>"));
}

std::string share(double part, double whole) { return digits(100 * part / whole, "%.3f") + "%"; }

int colour_of(const std::vector<Series>& series, size_t i) {
  return series[i].colour < 0 ? static_cast<int>(i) : series[i].colour;
}

// Leaves room above and below. Returns whether the axis is logarithmic.
bool widen(Range& ys) {
  constexpr double kLargest = std::numeric_limits<double>::max(),
                   kSmallest = std::numeric_limits<double>::denorm_min();
  if (ys.low > 0 && ys.high / 100 > ys.low) {
    ys.low = std::max(std::pow(10, std::floor(std::log10(ys.low))), kSmallest);
    ys.high = std::min(ys.high * 1.1, kLargest);
    return true;
  }
  // A constant is in the middle.
  const bool constant = ys.low == ys.high;
  const double margin = !constant     ? 0.05 * ys.high - 0.05 * ys.low
                        : ys.low == 0 ? 1
                                      : std::max(0.1 * std::abs(ys.low), kSmallest);
  const bool share = !constant && ys.low >= 0 && ys.high <= 1;
  // Quantities that start near zero keep zero as the lower limit, shares one as the upper.
  ys.low = ys.low >= 0 && ys.low < 0.3 * ys.high ? 0 : std::max(ys.low - margin, -kLargest);
  ys.high = std::min(ys.high + margin, share ? 1.0 : kLargest);
  return false;
}

// A single x gets room to its right.
void widen_x(Range& xs) {
  if (xs.low == xs.high) xs.high = std::max(xs.low + 1, std::nextafter(xs.low, INFINITY));
}

std::string legend_of(const std::vector<Series>& series) {
  std::string legend = "<p class=\"legend\">";
  for (size_t i = 0; i < series.size(); ++i) {
    legend += cat("<span><i class=\"", colour_class(colour_of(series, i)), "\"></i>",
                  html_text(series[i].name), "</span>");
  }
  return legend + "</p>";
}

}  // namespace

std::string colour_class(int colour) {
  const int dashes = colour / kColours % 3;
  return cat("s", colour % kColours, dashes > 0 ? cat(" d", dashes) : "");
}

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
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string short_number(double value) {
  if (std::floor(value) == value && std::abs(value) < 1e7) {
    std::string text = digits(value, "%.0f");
    for (int at = static_cast<int>(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
      text.insert(at, ",");
    return text;
  }
  return digits(shown(value), "%.4g");
}

std::string line_chart(const std::string& x_name, double x_end, const std::vector<Series>& series,
                       bool legend) {
  Range xs, ys;
  xs.add(0);
  xs.add(x_end);
  size_t count = 0;
  for (const Series& one : series) {
    count += one.points.size();
    for (const auto& [x, y] : one.points) {
      xs.add(x);
      ys.add(y);
    }
  }
  if (ys.empty()) return "<p class=\"note\">No values.</p>";
  widen_x(xs);
  const bool logarithmic = widen(ys);
  const Axis x(xs.low, xs.high, 0, box_width, false),
      y(ys.low, ys.high, box_height, 0, logarithmic);

  std::string grid, y_texts, x_texts, curves;
  for (const double tick : y.ticks(5)) {
    const std::string at = coordinate(y.at(tick));
    grid += cat("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"", at, "\" y2=\"", at, "\"/>");
    y_texts += cat("<text x=\"100%\" y=\"", coordinate(y.at(tick) + 4), "\">", short_number(tick),
                   "</text>");
  }
  for (const double tick : x.ticks(5)) {
    x_texts += cat("<text x=\"", share(x.at(tick), box_width), "\" y=\"16\">", short_number(tick),
                   "</text>");
  }
  for (size_t i = 0; i < series.size(); ++i)
    curves += curve(series[i], x, y, colour_of(series, i), count <= few_points);
  return cat(legend ? legend_of(series) : "", "<div class=\"chart\"><svg class=\"y\">", y_texts,
             "</svg><div class=\"plot\" data-low=\"", digits(xs.low, "%.10g"), "\" data-high=\"",
             digits(xs.high, "%.10g"), "\" data-end=\"", digits(x_end, "%.10g"), "\" data-x=\"",
             html_text(x_name), "\"", logarithmic ? " data-log" : "", "><svg>", grid,
             "<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"", box_height, "\" y2=\"", box_height,
             "\"/></svg><svg viewBox=\"0 0 ", box_width, " ", box_height,
             "\" preserveAspectRatio=\"none\">", curves, "</svg></div><svg class=\"x\">", x_texts,
             "</svg><p class=\"x_name\">", html_text(x_name),
             logarithmic ? ", values on a logarithmic scale" : "", "</p></div>");
}

std::string sparkline(const Series& series) {
  Range xs, ys;
  for (const auto& [x, y] : series.points) {
    if (std::isfinite(y)) xs.add(x);
    ys.add(y);
  }
  if (ys.empty()) return "";
  widen_x(xs);
  const bool logarithmic = widen(ys);
  const Axis x(xs.low, xs.high, 1, 99, false), y(ys.low, ys.high, 22, 2, logarithmic);
  return cat(
      "<svg class=\"spark\" viewBox=\"0 0 100 24\" preserveAspectRatio=\"none\"><path "
      "class=\"curve ",
      colour_class(std::max(series.colour, 0)), "\" d=\"", path_of(series.points, x, y),
      "\"/></svg>");
}

}  // namespace crema
