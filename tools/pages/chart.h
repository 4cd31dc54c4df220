// Line charts as SVG inside an HTML page; the page's style sheet (tools/pages/page.h) defines
// colours and fonts, its script shows values where the pointer is.
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
};

// The colours of the style sheet, s0, s1...; from then on they repeat, with dashed lines.
constexpr int kColours = 8;
// "s1 d1": the classes that give an element colour and dashes.
std::string colour_class(int colour);

// A chart with a legend (for two or more series) whose x axis extends from 0 to at least x_end; as
// wide as there is room. The y axis is logarithmic when the values are positive and span more than two
// decades. Of a long series about a thousand points are drawn, the extremes of each part among them.
std::string line_chart(const std::string& x_name, double x_end, const std::vector<Series>& series);

// A line without axes, as small as a word.
std::string sparkline(const Series& series);

// "0.000123", "1.2e+05", "12,000": short, for display.
std::string short_number(double value);

// Escapes the characters that are special in HTML.
std::string html_text(const std::string& text);

}  // namespace crema
