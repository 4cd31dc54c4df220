// The parts of a drawing as SVG: texts, rectangles, and the box of a layer.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/drawing/net_boxes.h"
#include "tools/pages/drawing/net_layout.h"

namespace crema {

// "12.5".
std::string svg_number(double number);
std::string svg_rectangle(const std::string& css, double x, double y, double width, double height,
                          double radius);
// Escaped.
std::string svg_text(const std::string& css, double x, double y, const std::string& text,
                     bool to_the_left = false);

// "1.53 G", "25.6 M", "9.41 k", "500".
std::string counted(double number);

// The text in a box.
class NetBoxText {
 public:
  NetBoxText(const NetBox& box, bool has_shapes);
  double width() const;
  double height() const;
  std::string svg(const LayoutBox& place) const;

 private:
  // `right` is aligned with the right edge.
  struct Line {
    std::string css, left, right;
    int step = -1;
  };
  std::string tooltip() const;
  std::string fused_svg(const LayoutBox& place) const;

  const NetBox& box_;
  const bool has_shapes_;
  std::vector<Line> lines_;
  size_t layer_lines_ = 0;  // lines after these are a little apart
};

}  // namespace crema
