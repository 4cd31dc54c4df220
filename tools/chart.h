// Line charts as SVG that goes into an HTML page; colours and fonts come from the page's style sheet.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending in x; values that are not finite leave a gap
};

// A chart with a legend (for two series and more). The y axis is logarithmic when the values are positive and span more than
// two decades.
std::string line_chart(const std::string& x_name, const std::vector<Series>& series);

// "0.000123", "1.2e+05", "12,000": short, for people.
std::string short_number(double value);

// Text with the characters that HTML would read replaced.
std::string html_text(const std::string& text);

}  // namespace crema
