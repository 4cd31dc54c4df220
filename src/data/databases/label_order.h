// The order of the records' labels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace crema {

// Whether the records are sorted by class, so that without shuffling a batch has only one or two
// classes. `labels`: of all records, or of some that are spread evenly.
inline bool sorted_by_class(const std::vector<int64_t>& labels) {
  constexpr size_t kFew = 20;  // too few to tell their order
  if (labels.size() < kFew || !std::is_sorted(labels.begin(), labels.end())) return false;
  const std::set<int64_t> classes(labels.begin(), labels.end());
  // As many as records: they are no classes.
  return classes.size() > 1 && classes.size() < labels.size();
}

}  // namespace crema
