#include "tools/pages/drawing/net_drawing.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/drawing/net_blocks.h"
#include "tools/pages/drawing/net_box_text.h"
#include "tools/pages/drawing/net_layout.h"
#include "tools/pages/drawing/net_style.h"

namespace crema {

namespace {

constexpr double kMargin = 24;
constexpr double kAboveBlock = 24, kBesideBlock = 12, kBelowBlock = 9, kBesideLine = 6;

std::string line_svg(const LayoutLine& line) {
  std::string path = cat("M", svg_number(line.points[0].x), " ", svg_number(line.points[0].y));
  for (size_t i = 1; i < line.points.size(); ++i) {
    const LayoutPoint a = line.points[i - 1], b = line.points[i];
    if (std::abs(a.x - b.x) < 0.05 && std::abs(a.y - b.y) < 0.05) continue;
    if (std::abs(a.x - b.x) < 0.05 || std::abs(a.y - b.y) < 0.05) {
      path += cat("L", svg_number(b.x), " ", svg_number(b.y));
    } else {
      const double middle = (a.y + b.y) / 2;
      path += cat("C", svg_number(a.x), " ", svg_number(middle), " ", svg_number(b.x), " ",
                  svg_number(middle), " ", svg_number(b.x), " ", svg_number(b.y));
    }
  }
  const LayoutPoint end = line.points.back();
  return cat("<path class=\"line\" d=\"", path, "\"/><path class=\"tip\" d=\"M", svg_number(end.x),
             " ", svg_number(end.y), "l-3.5 -7h7z\"/>\n");
}

// Blocks of a kind are named by a letter: "A", ..., "Z", then numbers.
std::string kind_name(int kind) { return kind < 26 ? std::string(1, 'A' + kind) : cat(kind + 1); }

// The widest gap between what lines cover from `left` to `right` in the band above a block.
std::pair<double, double> gap_above(const Layout& layout, double left, double right, double top) {
  std::vector<std::pair<double, double>> covered;
  for (const LayoutLine& line : layout.lines) {
    for (size_t i = 1; i < line.points.size(); ++i) {
      const LayoutPoint &a = line.points[i - 1], &b = line.points[i];
      if (std::max(a.y, b.y) < top - kAboveBlock || std::min(a.y, b.y) > top) continue;
      covered.emplace_back(std::min(a.x, b.x) - kBesideLine, std::max(a.x, b.x) + kBesideLine);
    }
  }
  std::sort(covered.begin(), covered.end());
  std::pair<double, double> widest = {left, left};
  double free = left;
  for (const auto& [from, to] : covered) {
    if (std::min(from, right) - free > widest.second - widest.first)
      widest = {free, std::min(from, right)};
    free = std::max(free, to);
  }
  if (right - free > widest.second - widest.first) widest = {free, right};
  return widest;
}

// The name of a block in full, "res2a · block A 1 of 16", and shorter.
std::vector<std::string> block_titles(const NetBlock& block) {
  const std::string kind = kind_name(block.kind);
  std::vector<std::string> titles = {cat("block ", kind, " ", block.number, " of ", block.of),
                                     cat(kind, " ", block.number, "/", block.of), kind};
  if (!block.name.empty())
    titles.insert(titles.begin(), cat(shortened(block.name, 30), " · ", titles[0]));
  return titles;
}

// The frame of a block is below the lines, its name next to them.
struct BlockFrame {
  std::string frame, name;
};

BlockFrame block_svg(const NetBlock& block, const Layout& layout) {
  double left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
  const int column = layout.boxes[block.boxes[0]].column;
  for (const int index : block.boxes) {
    const LayoutBox& box = layout.boxes[index];
    if (box.column != column) return {};  // broken between columns
    left = std::min(left, box.x);
    right = std::max(right, box.x + box.width);
    top = std::min(top, box.y);
    bottom = std::max(bottom, box.y + box.height);
  }
  const std::vector<int>& in = block.boxes;
  for (const LayoutLine& line : layout.lines) {
    if (std::find(in.begin(), in.end(), line.to) == in.end()) continue;
    // From its end, as far as it runs in this column and next to the block.
    for (size_t i = line.points.size(); i-- > 0;) {
      const LayoutPoint& point = line.points[i];
      if (point.y < top - 1 || (i + 1 < line.points.size() && point.y > line.points[i + 1].y))
        break;
      left = std::min(left, point.x);
      right = std::max(right, point.x);
    }
  }
  left -= kBesideBlock;
  right += kBesideBlock;
  const std::string kind = cat("k", block.kind % 4);
  const auto [from, to] = gap_above(layout, left + 10, right - 4, top);
  const std::vector<std::string> titles = block_titles(block);
  const auto fits = std::find_if(
      titles.begin(), titles.end() - 1,
      [&, room = to - from](const std::string& title) { return text_width(title, 11.5) <= room; });
  return {cat("<g><title>", html_text(titles[0]), "</title>",
              svg_rectangle("block " + kind, left, top - kAboveBlock, right - left,
                            bottom - top + kAboveBlock + kBelowBlock, 10),
              "</g>\n"),
          svg_text("block " + kind, from, top - kAboveBlock + 16, *fits) + "\n"};
}

// The legend of the colours in use.
std::string legend(const NetBoxes& net, double y, bool blocks) {
  static const char* names[] = {"data",    "weights",        "pooling", "normalization",
                                "joining", "loss, accuracy", "other"};
  double x = kMargin;
  std::string svg;
  const auto item = [&](const std::string& mark, const std::string& text) {
    svg += mark + svg_text("soft", x + 18, y, text);
    x += 34 + text_width(text, 11.5);
  };
  for (int kind = 0; kind < 7; ++kind) {
    if (std::none_of(net.boxes.begin(), net.boxes.end(),
                     [&](const NetBox& box) { return static_cast<int>(box.kind) == kind; }))
      continue;
    item(cat("<g class=\"", net_box_class(static_cast<NetBoxKind>(kind)), "\">",
             svg_rectangle("stripe", x, y - 9, 11, 11, 2), "</g>"),
         names[kind]);
  }
  bool fused = false;
  for (const NetBox& box : net.boxes) {
    for (size_t i = 1; i < box.rows.size(); ++i)
      fused |= net.has_shapes && box.rows[i].step == box.rows[i - 1].step;
  }
  if (fused) item(svg_rectangle("fused", x, y - 9, 11, 11, 2), "computed in one step");
  if (blocks) item(svg_rectangle("block k0", x, y - 9, 11, 11, 2), "repeated block");
  return svg;
}

// Characters that Unicode allows and XML does not: viewers would refuse the whole drawing.
std::string without_noncharacters(std::string svg) {
  for (const char* character : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (size_t at = svg.find(character); at != std::string::npos; at = svg.find(character, at))
      svg.replace(at, 3, "\xef\xbf\xbd");
  }
  return svg;
}

std::string totals(const NetBoxes& net) {
  std::string text = cat(net.layers, net.layers == 1 ? " layer" : " layers");
  if (!net.has_shapes) return text;
  double parameters = 0, operations = 0;
  for (const NetBox& box : net.boxes) {
    parameters += static_cast<double>(box.parameters);
    operations += static_cast<double>(box.operations);
  }
  return cat(text, ", ", counted(parameters), " parameters, ", counted(operations),
             " operations in a forward pass, ", size_text(net.bytes), " as planned on the CPU");
}

}  // namespace

std::string net_svg(const NetBoxes& net, const std::string& note) {
  Layout layout;
  std::vector<NetBoxText> texts;
  for (const NetBox& box : net.boxes) {
    texts.emplace_back(box, net.has_shapes);
    LayoutBox place;
    place.width = texts.back().width();
    place.height = texts.back().height();
    layout.boxes.push_back(place);
  }
  for (const NetBoxes::Line& line : net.lines) layout.lines.push_back({line.from, line.to});
  const std::vector<NetBlock> blocks = repeated_blocks(net);
  lay_out(&layout);

  const std::string title =
      cat(shortened(net.name, 80), ", phase ", net.training ? "TRAIN" : "TEST");
  const std::vector<std::string> notes = wrapped(note, 110);
  const double above = kMargin + 70 + 17 * static_cast<double>(notes.size());
  std::string svg, names;
  for (const NetBlock& block : blocks) {
    const BlockFrame drawn = block_svg(block, layout);
    svg += drawn.frame;
    names += drawn.name;
  }
  for (const LayoutLine& line : layout.lines) svg += line_svg(line);
  svg += names;
  for (size_t i = 0; i < net.boxes.size(); ++i) svg += texts[i].svg(layout.boxes[i]);

  std::string head = svg_text("title", kMargin, kMargin + 10, title) +
                     svg_text("soft", kMargin, kMargin + 31, totals(net));
  double y = kMargin + 31;
  for (const std::string& line : notes) head += svg_text("note", kMargin, y += 17, line);
  head += legend(net, y + 22, !blocks.empty());
  double widest = layout.width;
  for (const std::string& text : notes) widest = std::max(widest, text_width(text, 12));
  widest = std::max({widest, text_width(totals(net), 11.5), text_width(title, 19), 560.0});
  const double width = widest + 2 * kMargin + kBesideBlock;
  const double height = layout.height + above + kMargin + kBelowBlock;
  return without_noncharacters(
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"net\" role=\"img\" viewBox=\"0 0 ",
          svg_number(width), " ", svg_number(height), "\" width=\"", svg_number(width),
          "\" height=\"", svg_number(height), "\">\n<title>", html_text(title), "</title>\n<style>",
          net_style(), "</style>\n", svg_rectangle("page", 0, 0, width, height, 0), head,
          "\n<g transform=\"translate(", svg_number((width - layout.width) / 2), " ",
          svg_number(above), ")\">\n", svg, "</g>\n</svg>\n"));
}

}  // namespace crema
