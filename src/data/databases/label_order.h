// How the labels of records follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace crema {

// Whether the records come class after class, so that a training that does not shuffle them sees
// one or two classes in each batch. `labels`: of all records, or of some that are spread evenly.
inline bool sorted_by_class(const std::vector<int64_t>& labels) {
  constexpr size_t kFew = 20;  // too few to tell their order
  if (labels.size() < kFew || !std::is_sorted(labels.begin(), labels.end())) return false;
  const std::set<int64_t> classes(labels.begin(), labels.end());
  // As many as records: they are no classes.
  return classes.size() > 1 && classes.size() < labels.size();
}

}  // namespace crema
