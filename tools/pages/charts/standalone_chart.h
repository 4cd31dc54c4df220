// A chart as a separate SVG file: measured points and a smooth curve over a logarithmic axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

struct StandaloneChart {
  std::string title, x_name, y_name;
  std::vector<std::pair<double, double>> points;  // drawn as dots; those out of range are left out
  std::vector<std::pair<double, double>> curve;   // x is positive and ascends
  double y_low = 0, y_high = 1;                   // the range shown
  struct Mark {
    double x = 0;
    std::string text;
  };
  std::vector<Mark> marks;  // vertical lines with a text; those out of range are left out
};

std::string standalone_chart(const StandaloneChart& chart);

}  // namespace crema
