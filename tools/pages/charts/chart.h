// Line charts as SVG inside an HTML page; the page's style sheet (tools/pages/page.h) defines
// colours and fonts, its script shows values at the pointer.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

struct Series {
  std::string name;
  // Ascending in x; values that are not finite leave a gap.
  std::vector<std::pair<double, double>> points;
  int colour = -1;  // -1: its place in the chart
  // For the page's script, which draws the same values over time or epochs:
  std::vector<double> seconds{};  // of each point; empty: not known
  double epoch = 0;               // what an epoch is in x; 0: not known
};

// The colours of the style sheet, s0, s1...; from then on they repeat, with dashed lines.
constexpr int kColours = 8;
// "s1 d1": the classes that give an element colour and dashes.
std::string colour_class(int colour);

// A chart whose x axis extends from 0 to at least x_end; as wide as there is room. `legend`: names
// of the series above it. The y axis is logarithmic if the values are positive and span more than
// two decades. For a long series about a thousand points are drawn, including the extremes of each
// part.
std::string line_chart(const std::string& x_name, double x_end, const std::vector<Series>& series,
                       bool legend);

// A line without axes, as small as a word.
std::string sparkline(const Series& series);

// "0.000123", "1.2e+05", "12,000": short, for display.
std::string short_number(double value);

// Escapes the characters that are special in HTML.
std::string html_text(const std::string& text);

}  // namespace crema
