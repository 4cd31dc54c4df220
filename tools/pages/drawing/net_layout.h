// The positions of a net's boxes in its drawing, and the lines between them: a layered layout. Rows
// go down by the longest path from a source; a line that passes rows has a slot in each of them;
// barycentres order a row; a tall drawing continues in a further column where few lines cross.
#pragma once

#include <cstddef>
#include <vector>

namespace crema {

struct LayoutBox {
  double width = 0, height = 0;
  // Set by lay_out(): the left upper corner, the row and the column.
  double x = 0, y = 0;
  int row = 0, column = 0;
};

struct LayoutPoint {
  double x = 0, y = 0;
};

struct LayoutLine {
  int from = 0, to = 0;  // boxes, from < to
  // Set by lay_out(): from the lower edge of one to the upper edge of the other.
  std::vector<LayoutPoint> points{};
};

struct Layout {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutLine> lines;
  double width = 0, height = 0;

  // A drawing that would be taller is set in columns, as many as fit into that width.
  double tallest = 1400, widest = 2500;
};

// The row of each box: one below the lowest box that it reads. A box that reads nothing is right
// above its first reader.
std::vector<int> rows_of(size_t boxes, const std::vector<LayoutLine>& lines);

// Sets all places. The lines have no loops, as each leads to a later box.
void lay_out(Layout* layout);

}  // namespace crema
