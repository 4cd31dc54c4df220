// The order of the items in the rows of a layered drawing, with few crossings, and their horizontal
// positions.
#pragma once

#include <cstdint>
#include <vector>

namespace crema {

// A box, or the point where a long line passes a row.
struct RowItem {
  double width = 0;
  int box = -1;  // -1: of a line
  int line = -1;
  double x = 0;                   // of its middle
  std::vector<int> above, below;  // items of the rows next to its own
};

struct RowItems {
  std::vector<RowItem> items;
  std::vector<std::vector<int>> rows;  // items from left to right
};

// Orders each row by the barycentres of its neighbours, down and up, swaps adjacent items if that
// helps, and keeps the order with the fewest crossings.
void order_rows(RowItems* all);

int64_t crossings(const RowItems& all);

// Positions items in the order of their rows: each as close to the middle of its neighbours as its
// row allows, with `gap` between them; long lines stay straight.
void place_in_rows(RowItems* all, double gap);

}  // namespace crema
