#include "tools/pages/drawing/net_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/pages/drawing/row_order.h"

namespace crema {

namespace {

constexpr double between_boxes = 22, between_rows = 40, between_columns = 70, line_width = 4;
constexpr double port = 14;  // between lines that end at the same box

// The items of each row, and for each line those on its way, its boxes included.
struct Rows {
  RowItems items;
  std::vector<std::vector<int>> ways;
};

Rows rows_for(const Layout& layout) {
  Rows rows;
  std::vector<RowItem>& items = rows.items.items;
  int last = 0;
  for (const LayoutBox& box : layout.boxes) last = std::max(last, box.row);
  rows.items.rows.resize(last + 1);
  for (size_t i = 0; i < layout.boxes.size(); ++i) {
    RowItem item;
    item.width = layout.boxes[i].width;
    item.box = static_cast<int>(i);
    items.push_back(std::move(item));
    rows.items.rows[layout.boxes[i].row].push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < layout.lines.size(); ++i) {
    const LayoutLine& line = layout.lines[i];
    std::vector<int> way = {line.from};
    for (int row = layout.boxes[line.from].row + 1; row < layout.boxes[line.to].row; ++row) {
      RowItem item;
      item.width = line_width;
      item.line = static_cast<int>(i);
      way.push_back(static_cast<int>(items.size()));
      rows.items.rows[row].push_back(way.back());
      items.push_back(std::move(item));
    }
    way.push_back(line.to);
    for (size_t k = 0; k + 1 < way.size(); ++k) {
      items[way[k]].below.push_back(way[k + 1]);
      items[way[k + 1]].above.push_back(way[k]);
    }
    rows.ways.push_back(std::move(way));
  }
  return rows;
}

struct Extent {
  double low = INFINITY, high = -INFINITY;
  void add(const RowItem& item) {
    low = std::min(low, item.x - item.width / 2);
    high = std::max(high, item.x + item.width / 2);
  }
  double size() const { return high > low ? high - low : 0; }
};

class Placer {
 public:
  Placer(Layout* layout, Rows rows)
      : layout_(*layout), rows_(std::move(rows)), items_(rows_.items.items) {}

  void place() {
    order_rows(&rows_.items);
    place_in_rows(&rows_.items, between_boxes);
    measure();
    choose_columns();
    place_boxes();
    for (size_t i = 0; i < layout_.lines.size(); ++i) place_line(static_cast<int>(i));
  }

 private:
  size_t count() const { return rows_.items.rows.size(); }

  void measure() {
    for (const std::vector<int>& row : rows_.items.rows) {
      double height = 0;
      for (const int item : row) {
        if (items_[item].box >= 0)
          height = std::max(height, layout_.boxes[items_[item].box].height);
        all_.add(items_[item]);
      }
      heights_.push_back(height);
      total_ += height + between_rows;
    }
  }

  // How many items of this row and of earlier ones have lines to the next row.
  size_t sources_below(size_t row) const {
    size_t sources = 0;
    for (const int item : rows_.items.rows[row]) sources += !items_[item].below.empty();
    return sources;
  }

  // As many columns as fit next to each other, if the drawing is tall. They end where only one
  // result continues, so that no block is torn apart; if that comes too late, where two do.
  void choose_columns() {
    const double fit =
        std::floor((layout_.widest + between_columns) / (all_.size() + between_columns));
    const double columns = std::clamp(fit, 1.0, std::ceil(total_ / layout_.tallest));
    const double target = total_ / columns;
    column_of_.assign(count(), 0);
    int column = 0;
    size_t first = 0;  // row of the column
    double before = 0;
    while (column + 1 < columns) {
      size_t cut = 0, emergency = 0;
      double height = 0;
      for (size_t row = first; row + 1 < count(); ++row) {
        height += heights_[row] + between_rows;
        if (height < 0.6 * target) continue;
        // The nearest to the wanted height, above it or below.
        if (sources_below(row) == 1 && (cut == 0 || height < 1.1 * target)) cut = row + 1;
        if (sources_below(row) == 2 && height < 1.5 * target) emergency = row + 1;
        if (height > 1.1 * target && (cut > 0 || (emergency > 0 && height > 1.5 * target))) break;
      }
      if (cut == 0) cut = emergency;
      if (cut == 0) break;
      ++column;
      for (size_t row = first; row < cut; ++row) before += heights_[row] + between_rows;
      for (size_t row = cut; row < count(); ++row) column_of_[row] = column;
      first = cut;
    }
    columns_.resize(column + 1);
  }

  void place_boxes() {
    std::vector<Extent> extents(columns_.size());
    for (size_t row = 0; row < count(); ++row) {
      for (const int item : rows_.items.rows[row]) extents[column_of_[row]].add(items_[item]);
    }
    double right = 0;
    for (size_t column = 0; column < columns_.size(); ++column) {
      columns_[column].shift = right - extents[column].low;
      columns_[column].left = right;
      right += extents[column].size() + between_columns;
    }
    layout_.width = right - between_columns;
    for (size_t row = 0; row < count(); ++row) {
      Column& column = columns_[column_of_[row]];
      // Lines that continue from another column arrive from above, in the place of a gap.
      if (column.bottom == 0 && column_of_[row] > 0) column.bottom = between_rows;
      tops_.push_back(column.bottom);
      column.bottom += heights_[row] + between_rows;
      layout_.height = std::max(layout_.height, column.bottom - between_rows);
      for (const int id : rows_.items.rows[row]) {
        RowItem& item = items_[id];
        item.x += column.shift;
        if (item.box < 0) continue;
        LayoutBox& box = layout_.boxes[item.box];
        box.x = item.x - box.width / 2;
        box.y = tops_[row];
        box.column = column_of_[row];
      }
    }
    if (columns_.size() > 1) layout_.height += between_rows;
  }

  // Lines that end at one box arrive next to each other, in the order of their origins.
  double port_of(int line) const {
    const std::vector<int>& way = rows_.ways[line];
    const RowItem& box = items_[way.back()];
    std::vector<std::pair<double, int>> before;
    for (size_t i = 0; i < rows_.ways.size(); ++i) {
      const std::vector<int>& other = rows_.ways[i];
      if (other.back() == way.back())
        before.emplace_back(items_[other[other.size() - 2]].x, static_cast<int>(i));
    }
    std::sort(before.begin(), before.end());
    size_t at = 0;
    while (before[at].second != line) ++at;
    const double step = std::min(port, 0.7 * box.width / static_cast<double>(before.size()));
    return box.x + step * (static_cast<double>(at) - (static_cast<double>(before.size()) - 1) / 2);
  }

  void place_line(int index) {
    LayoutLine& line = layout_.lines[index];
    const std::vector<int>& way = rows_.ways[index];
    int row = layout_.boxes[line.from].row;
    double x = items_[way[0]].x;
    line.points = {{x, layout_.boxes[line.from].y + layout_.boxes[line.from].height},
                   {x, tops_[row] + heights_[row]}};
    for (size_t k = 1; k < way.size(); ++k) {
      ++row;
      const double next = k + 1 < way.size() ? items_[way[k]].x : port_of(index);
      if (column_of_[row] != column_of_[row - 1]) {
        // Down, between the columns, up, and down again. Lines of several results keep a distance.
        Column& column = columns_[column_of_[row]];
        const auto lane_of = column.lanes.emplace(way[k - 1], column.lanes.size()).first;
        const double lane = 8 * static_cast<double>(lane_of->second);
        const double low = line.points.back().y + 14 + lane, high = tops_[row] - 22 - lane;
        const double between = column.left - between_columns / 2 - lane;
        line.points.insert(line.points.end(),
                           {{x, low}, {between, low}, {between, high}, {next, high}});
      }
      line.points.push_back({next, tops_[row]});
      if (k + 1 < way.size()) line.points.push_back({next, tops_[row] + heights_[row]});
      x = next;
    }
  }

  struct Column {
    double left = 0, shift = 0, bottom = 0;
    std::map<int, size_t> lanes;  // of items at the end of the column before
  };

  Layout& layout_;
  Rows rows_;
  std::vector<RowItem>& items_;
  Extent all_;
  double total_ = 0;
  std::vector<double> heights_, tops_;  // of rows
  std::vector<int> column_of_;          // of rows
  std::vector<Column> columns_;
};

}  // namespace

std::vector<int> rows_of(size_t boxes, const std::vector<LayoutLine>& lines) {
  std::vector<std::vector<int>> before(boxes), after(boxes);
  for (const LayoutLine& line : lines) {
    before[line.to].push_back(line.from);
    after[line.from].push_back(line.to);
  }
  std::vector<int> rows(boxes, 0);
  for (size_t i = 0; i < boxes; ++i) {
    for (const int other : before[i]) rows[i] = std::max(rows[i], rows[other] + 1);
  }
  for (size_t i = 0; i < boxes; ++i) {
    if (!before[i].empty() || after[i].empty()) continue;
    int first = rows[after[i][0]];
    for (const int other : after[i]) first = std::min(first, rows[other]);
    rows[i] = first - 1;
  }
  return rows;
}

void lay_out(Layout* layout) {
  if (layout->boxes.empty()) return;
  const std::vector<int> rows = rows_of(layout->boxes.size(), layout->lines);
  for (size_t i = 0; i < rows.size(); ++i) layout->boxes[i].row = rows[i];
  Placer(layout, rows_for(*layout)).place();
}

}  // namespace crema
