// Line charts as SVG inside an HTML page; the page's style sheet defines colours and fonts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

struct Series {
  std::string name;
  // Ascending in x; values that are not finite leave a gap.
  std::vector<std::pair<double, double>> points;
};

// A chart with a legend (for two or more series) whose x axis extends to at least x_end. The y axis
// is logarithmic when the values are positive and span more than two decades.
std::string line_chart(const std::string& x_name, double x_end, const std::vector<Series>& series);

// "0.000123", "1.2e+05", "12,000": short, for display.
std::string short_number(double value);

// Escapes the characters that are special in HTML.
std::string html_text(const std::string& text);

}  // namespace crema
