#include "tools/pages/drawing/net_box_text.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/drawing/net_style.h"

namespace crema {

namespace {

constexpr double kRow = 17, kPadding = 10, kGap = 14, kApart = 4;

std::string numbers_of(const NetBox& box) {
  std::vector<std::string> parts;
  if (box.parameters > 0)
    parts.push_back(counted(static_cast<double>(box.parameters)) + " parameters");
  if (!box.shares.empty()) parts.push_back("shares " + shortened(box.shares, 24));
  if (box.operations > 0)
    parts.push_back(counted(static_cast<double>(box.operations)) + " operations");
  return join(parts, " · ");
}

}  // namespace

std::string svg_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", number);
  return text;
}

std::string svg_rectangle(const std::string& css, double x, double y, double width, double height,
                          double radius) {
  return cat("<rect class=\"", css, "\" x=\"", svg_number(x), "\" y=\"", svg_number(y),
             "\" width=\"", svg_number(width), "\" height=\"", svg_number(height), "\" rx=\"",
             svg_number(radius), "\"/>");
}

std::string svg_text(const std::string& css, double x, double y, const std::string& text,
                     bool to_the_left) {
  return cat("<text class=\"", css, "\" x=\"", svg_number(x), "\" y=\"", svg_number(y), "\"",
             to_the_left ? " text-anchor=\"end\"" : "", ">", html_text(text), "</text>");
}

std::string counted(double number) {
  const char* unit = "";
  for (const char* larger : {" k", " M", " G", " T"}) {
    if (number < 1000) break;
    number /= 1000;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, *unit && number < 100 ? "%.3g" : "%.0f", number);
  return text + std::string(unit);
}

NetBoxText::NetBoxText(const NetBox& box, bool has_shapes) : box_(box), has_shapes_(has_shapes) {
  if (!box.from_afar.empty()) lines_.push_back({"far", "← " + join(box.from_afar, ", "), ""});
  for (size_t i = 0; i < box.rows.size(); ++i) {
    const NetBox::Row& row = box.rows[i];
    const std::string name = shortened(row.name, 34);
    lines_.push_back(
        {i == 0 ? "name" : "small", name.empty() ? "(no name)" : name, row.type, row.step});
    if (!row.detail.empty() && row.type != "Dropout" && row.type != "LRN")
      lines_.push_back({"soft", shortened(row.detail, 44), "", row.step});
  }
  layer_lines_ = lines_.size();
  for (size_t i = 0; i < box.results.size(); i += 2) {
    std::string results = shortened(box.results[i], 40);
    if (i + 1 < box.results.size()) results += ", " + shortened(box.results[i + 1], 40);
    const bool last = i + 2 >= box.results.size();
    lines_.push_back(
        {"shape", results, last && has_shapes && box.bytes > 0 ? size_text(box.bytes) : ""});
  }
  if (const std::string numbers = numbers_of(box); !numbers.empty())
    lines_.push_back({"soft", numbers, ""});
}

double NetBoxText::width() const {
  double widest = 83;
  for (const Line& line : lines_) {
    const double size = line.css == "name" ? 13.5 : line.css == "shape" ? 12.5 : 11.5;
    widest = std::max(widest, text_width(line.left, size) +
                                  (line.right.empty() ? 0 : kGap + text_width(line.right, 11.5)));
  }
  return widest + 27;
}

double NetBoxText::height() const {
  return 2 * kPadding - 6 + kRow * static_cast<double>(lines_.size()) +
         (lines_.size() > layer_lines_ ? kApart : 0);
}

// The tooltip of the box: all fields in full.
std::string NetBoxText::tooltip() const {
  std::vector<std::string> lines;
  for (const NetBox::Row& row : box_.rows)
    lines.push_back(
        cat(row.name, ": ", row.type, row.detail.empty() ? "" : cat(" (", row.detail, ")")));
  for (const std::string& result : box_.results) lines.push_back("→ " + result);
  if (has_shapes_) {
    lines.push_back(cat(short_number(static_cast<double>(box_.parameters)), " parameters, ",
                        short_number(static_cast<double>(box_.operations)), " operations, ",
                        size_text(box_.bytes), " of memory"));
  }
  for (std::string& line : lines) line = html_text(line);
  return "<title>" + join(lines, "\n") + "</title>";
}

// Frames around the lines of layers that are one step.
std::string NetBoxText::fused_svg(const LayoutBox& place) const {
  std::map<int, int> layers_of_step;
  for (const NetBox::Row& row : box_.rows) ++layers_of_step[row.step];
  std::string svg;
  for (size_t i = 0; i < layer_lines_; ++i) {
    const int step = lines_[i].step;
    if (step < 0 || layers_of_step[step] < 2 || (i > 0 && lines_[i - 1].step == step)) continue;
    size_t end = i;
    while (end < layer_lines_ && lines_[end].step == step) ++end;
    svg +=
        svg_rectangle("fused", place.x + 8, place.y + kPadding - 3 + kRow * static_cast<double>(i),
                      place.width - 13, kRow * static_cast<double>(end - i) + 1, 4);
  }
  return svg;
}

std::string NetBoxText::svg(const LayoutBox& place) const {
  std::string svg = cat("<g class=\"", net_box_class(box_.kind), "\">", tooltip(),
                        svg_rectangle("box", place.x, place.y, place.width, place.height, 6));
  // The stripe at the left says the kind; its corners follow those of the box.
  svg += cat("<path class=\"stripe\" d=\"M", svg_number(place.x + 5), " ", svg_number(place.y),
             "h-1a4 4 0 0 0 -4 4v", svg_number(place.height - 8), "a4 4 0 0 0 4 4h1z\"/>");
  svg += fused_svg(place);
  double y = place.y + kPadding + 10;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (i == layer_lines_) y += kApart;
    svg += svg_text(lines_[i].css, place.x + 14, y, lines_[i].left);
    if (!lines_[i].right.empty())
      svg += svg_text("soft", place.x + place.width - 11, y, lines_[i].right, true);
    y += kRow;
  }
  return svg + "</g>\n";
}

}  // namespace crema
