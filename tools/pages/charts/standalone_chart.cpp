#include "tools/pages/charts/standalone_chart.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/charts/ticks.h"

namespace crema {

namespace {

constexpr double plot_left = 72, plot_right = 776, plot_top = 92, plot_bottom = 424;
constexpr double line_height = 16;

// The file may be looked at alone: fonts and colours, also for dark surroundings, are in it.
constexpr const char* kStyle =
    "<style>svg{background:#fff;font:13px system-ui,sans-serif}text{fill:#22201d}"
    ".title{font-size:16px;font-weight:600}.grid{stroke:#e4e1dc}.axis{stroke:#75706a}"
    ".dot{fill:#a8b8ce}.curve{fill:none;stroke:#2463b5;stroke-width:2.2}"
    ".mark{stroke:#c2571a;stroke-dasharray:4 3}.of_mark{fill:#a8410f}"
    "@media screen and (prefers-color-scheme:dark){svg{background:#201f1c}text{fill:#eceae6}"
    ".grid{stroke:#383530}.axis{stroke:#a19b93}.dot{fill:#52678a}.curve{stroke:#74a9ee}"
    ".mark{stroke:#f09a62}.of_mark{fill:#f09a62}}</style>";

struct Frame {
  double low, high, y_low, y_high;
  double x(double value) const {
    return plot_left + (plot_right - plot_left) * std::log(value / low) / std::log(high / low);
  }
  double y(double value) const {
    return plot_bottom - (plot_bottom - plot_top) * (value - y_low) / (y_high - y_low);
  }
  bool shows(double value) const { return value >= y_low && value <= y_high; }
};

std::string tenths(double value) { return cat(std::round(10 * value) / 10); }

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* more = "") {
  return cat("<text x=\"", tenths(x), "\" y=\"", tenths(y), "\" text-anchor=\"", anchor, "\"", more,
             ">", html_text(text), "</text>");
}

std::string line_of(const char* name, double x1, double y1, double x2, double y2) {
  return cat("<line class=\"", name, "\" x1=\"", tenths(x1), "\" y1=\"", tenths(y1), "\" x2=\"",
             tenths(x2), "\" y2=\"", tenths(y2), "\"/>");
}

std::string grid(const Frame& frame) {
  std::string svg;
  for (const double tick : linear_ticks(frame.y_low, frame.y_high, 5)) {
    svg += line_of("grid", plot_left, frame.y(tick), plot_right, frame.y(tick));
    svg += text_at(plot_left - 8, frame.y(tick) + 4, "end", short_number(tick));
  }
  // Powers of ten; over less than two of them also their multiples by 2 and 5.
  const double decades = std::log10(frame.high / frame.low);
  for (int power = static_cast<int>(std::floor(std::log10(frame.low)));
       power <= std::log10(frame.high); ++power) {
    for (const double multiple : {1.0, 2.0, 5.0}) {
      const double tick = multiple * std::pow(10, power);
      if ((multiple > 1 && decades >= 2) || tick < 0.999 * frame.low || tick > 1.001 * frame.high)
        continue;
      svg += line_of("grid", frame.x(tick), plot_top, frame.x(tick), plot_bottom);
      svg += text_at(frame.x(tick), plot_bottom + 20, "middle", short_number(tick));
    }
  }
  return svg + line_of("axis", plot_left, plot_bottom, plot_right, plot_bottom);
}

}  // namespace

std::string standalone_chart(const StandaloneChart& chart) {
  Frame frame{chart.curve.front().first, chart.curve.back().first, chart.y_low, chart.y_high};
  if (frame.high <= frame.low) frame.high = 10 * frame.low;
  std::string svg =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 480\" width=\"800\" "
          "height=\"480\" role=\"img\">",
          kStyle, text_at(plot_left, 28, "start", chart.title, " class=\"title\""), grid(frame),
          text_at((plot_left + plot_right) / 2, plot_bottom + 44, "middle", chart.x_name),
          text_at(plot_left - 56, plot_top - 12, "start", chart.y_name),
          cat("<clipPath id=\"plot\"><rect x=\"", plot_left, "\" y=\"", plot_top, "\" width=\"",
              plot_right - plot_left, "\" height=\"", plot_bottom - plot_top, "\"/></clipPath>"));
  for (const auto& [x, y] : chart.points) {
    if (frame.shows(y))
      svg += cat("<circle class=\"dot\" cx=\"", tenths(frame.x(x)), "\" cy=\"", tenths(frame.y(y)),
                 "\" r=\"2.4\"/>");
  }
  std::string path;
  for (const auto& [x, y] : chart.curve) {
    if (std::isfinite(y))
      path += cat(path.empty() ? "M" : "L", tenths(frame.x(x)), " ", tenths(frame.y(y)));
  }
  svg += cat("<path class=\"curve\" clip-path=\"url(#plot)\" d=\"", path, "\"/>");
  // From left to right, each one line higher than the one before, so that no text crosses a mark.
  std::vector<StandaloneChart::Mark> marks = chart.marks;
  std::sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  double above = plot_top - 6;
  for (const StandaloneChart::Mark& mark : marks) {
    if (mark.x < frame.low || mark.x > frame.high) continue;
    const double x = frame.x(mark.x);
    const bool at_edge = x < plot_left + 140;
    svg += line_of("mark", x, above, x, plot_bottom);
    svg += text_at(x + (at_edge ? 6 : -6), above + 4, at_edge ? "start" : "end", mark.text,
                   " class=\"of_mark\"");
    above -= line_height;
  }
  return svg + "</svg>\n";
}

}  // namespace crema
