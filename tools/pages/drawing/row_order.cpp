#include "tools/pages/drawing/row_order.h"

#include <algorithm>
#include <cmath>

namespace crema {

namespace {

std::vector<int> positions_of(const RowItems& all) {
  std::vector<int> position(all.items.size());
  for (const std::vector<int>& row : all.rows) {
    for (size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<int>(i);
  }
  return position;
}

// Sorts a row by the mean position of its items' neighbours; items without neighbours keep theirs.
void sort_by_barycentre(RowItems* all, std::vector<int>* row, bool down,
                        std::vector<int>* position) {
  std::vector<std::pair<double, int>> keys;
  for (const int item : *row) {
    const std::vector<int>& others = down ? all->items[item].above : all->items[item].below;
    double sum = 0;
    for (const int other : others) sum += (*position)[other];
    keys.emplace_back(others.empty() ? (*position)[item] : sum / static_cast<double>(others.size()),
                      item);
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < keys.size(); ++i) {
    (*row)[i] = keys[i].second;
    (*position)[keys[i].second] = static_cast<int>(i);
  }
}

// For two adjacent items of a row, with the first on the left.
int crossings_of(const std::vector<int>& left, const std::vector<int>& right,
                 const std::vector<int>& position) {
  int count = 0;
  for (const int a : left) {
    for (const int b : right) count += position[a] > position[b];
  }
  return count;
}

// Swaps adjacent items if that reduces crossings, until none are left.
void swap_neighbours(RowItems* all, std::vector<int>* position) {
  bool better = true;
  for (int round = 0; better && round < 20; ++round) {
    better = false;
    for (std::vector<int>& row : all->rows) {
      for (size_t i = 0; i + 1 < row.size(); ++i) {
        const RowItem& a = all->items[row[i]];
        const RowItem& b = all->items[row[i + 1]];
        const int now =
            crossings_of(a.above, b.above, *position) + crossings_of(a.below, b.below, *position);
        const int then =
            crossings_of(b.above, a.above, *position) + crossings_of(b.below, a.below, *position);
        if (then >= now) continue;
        std::swap((*position)[row[i]], (*position)[row[i + 1]]);
        std::swap(row[i], row[i + 1]);
        better = true;
      }
    }
  }
}

// Minimises the sum of weight * (place - wanted)^2 where each place is at least the one before:
// neighbours that would overtake each other are pooled at their mean.
std::vector<double> ascending(const std::vector<double>& wanted,
                              const std::vector<double>& weights) {
  struct Pool {
    double place, weight;
    size_t size;
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].place > pools.back().place) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& before = pools.back();
      before.place =
          (before.place * before.weight + last.place * last.weight) / (before.weight + last.weight);
      before.weight += last.weight;
      before.size += last.size;
    }
  }
  std::vector<double> places;
  for (const Pool& pool : pools) places.insert(places.end(), pool.size, pool.place);
  return places;
}

// How strongly `above` and `below` attract each other: a line that passes rows becomes straight,
// and so do chains of boxes, before a fork is symmetric.
double pull(const RowItem& above, const RowItem& below) {
  if (above.box < 0 && below.box < 0) return 8;
  if (above.below.size() == 1 && below.above.size() == 1) return 4;
  return above.box < 0 || below.box < 0 ? 2 : 1;
}

void place_row(RowItems* all, const std::vector<int>& row, bool use_above, bool use_below,
               double gap) {
  std::vector<double> wanted, weights, offsets;
  double offset = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const RowItem& item = all->items[row[i]];
    if (i > 0) offset += (all->items[row[i - 1]].width + item.width) / 2 + gap;
    double sum = 0, weight = 0;
    const auto add = [&](const RowItem& other, double strength) {
      sum += strength * other.x;
      weight += strength;
    };
    for (const int other : use_above ? item.above : std::vector<int>{})
      add(all->items[other], pull(all->items[other], item));
    for (const int other : use_below ? item.below : std::vector<int>{})
      add(all->items[other], pull(item, all->items[other]));
    // An item without connections there keeps its position, if nothing else needs it.
    wanted.push_back((weight > 0 ? sum / weight : item.x) - offset);
    weights.push_back(weight > 0 ? weight : 0.01);
    offsets.push_back(offset);
  }
  const std::vector<double> places = ascending(wanted, weights);
  for (size_t i = 0; i < row.size(); ++i) all->items[row[i]].x = places[i] + offsets[i];
}

// Items that form a chain: each is the only successor of the one before, and reads nothing else.
std::vector<std::vector<int>> chains_of(const RowItems& all) {
  const auto next = [&](int item) {
    const std::vector<int>& below = all.items[item].below;
    return below.size() == 1 && all.items[below[0]].above.size() == 1 ? below[0] : -1;
  };
  std::vector<std::vector<int>> chains;
  for (size_t i = 0; i < all.items.size(); ++i) {
    const std::vector<int>& above = all.items[i].above;
    if (above.size() == 1 && next(above[0]) == static_cast<int>(i)) continue;
    std::vector<int> chain;
    for (int item = static_cast<int>(i); item >= 0; item = next(item)) chain.push_back(item);
    if (chain.size() > 1) chains.push_back(std::move(chain));
  }
  return chains;
}

// Makes each chain vertical if its rows leave a common position. place_row() leaves a slope,
// because each item is halfway between its neighbours.
void straighten(RowItems* all, double gap) {
  const std::vector<int> position = positions_of(*all);
  std::vector<int> row_of(all->items.size());
  for (size_t row = 0; row < all->rows.size(); ++row) {
    for (const int item : all->rows[row]) row_of[item] = static_cast<int>(row);
  }
  for (const std::vector<int>& chain : chains_of(*all)) {
    double low = -INFINITY, high = INFINITY, sum = 0;
    for (const int id : chain) {
      const RowItem& item = all->items[id];
      const std::vector<int>& row = all->rows[row_of[id]];
      const size_t at = position[id];
      const auto distance = [&](const RowItem& other) {
        return (item.width + other.width) / 2 + gap;
      };
      if (at > 0) {
        const RowItem& left = all->items[row[at - 1]];
        low = std::max(low, left.x + distance(left));
      }
      if (at + 1 < row.size()) {
        const RowItem& right = all->items[row[at + 1]];
        high = std::min(high, right.x - distance(right));
      }
      sum += item.x;
    }
    if (low > high) continue;
    const double x = std::clamp(sum / static_cast<double>(chain.size()), low, high);
    for (const int id : chain) all->items[id].x = x;
  }
}

}  // namespace

int64_t crossings(const RowItems& all) {
  const std::vector<int> position = positions_of(all);
  int64_t count = 0;
  for (const std::vector<int>& row : all.rows) {
    std::vector<int> ends;  // of the lines below, from left to right
    for (const int item : row) {
      std::vector<int> of_item;
      for (const int other : all.items[item].below) of_item.push_back(position[other]);
      std::sort(of_item.begin(), of_item.end());
      ends.insert(ends.end(), of_item.begin(), of_item.end());
    }
    for (size_t i = 0; i < ends.size(); ++i) {
      for (size_t j = i + 1; j < ends.size(); ++j) count += ends[j] < ends[i];
    }
  }
  return count;
}

void order_rows(RowItems* all) {
  std::vector<int> position = positions_of(*all);
  std::vector<std::vector<int>> best = all->rows;
  int64_t fewest = crossings(*all);
  for (int sweep = 0; sweep < 12 && fewest > 0; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (size_t i = 0; i < all->rows.size(); ++i)
      sort_by_barycentre(all, &all->rows[down ? i : all->rows.size() - 1 - i], down, &position);
    swap_neighbours(all, &position);
    const int64_t now = crossings(*all);
    if (now >= fewest) continue;
    fewest = now;
    best = all->rows;
  }
  all->rows = best;
}

void place_in_rows(RowItems* all, double gap) {
  for (const std::vector<int>& row : all->rows) place_row(all, row, false, false, gap);
  const size_t rows = all->rows.size();
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (size_t i = 0; i < rows; ++i) place_row(all, all->rows[i], true, sweep > 9, gap);
    for (size_t i = rows; i-- > 0;) place_row(all, all->rows[i], sweep > 9, true, gap);
  }
  for (int round = 0; round < 4; ++round) straighten(all, gap);
}

}  // namespace crema
