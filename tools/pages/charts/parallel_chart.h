// Parallel coordinates: an axis for each quantity, a line for each run through its values.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct ParallelAxis {
  std::string name;
  std::vector<std::string> values;  // of each line; numbers or words, "": not there
};

// As SVG for a page. Axes of positive numbers over more than a decade are logarithmic; words are in
// the order in which they come. A line without a value has a gap there. Colours are those of the
// lines' places, as in charts.
std::string parallel_chart(const std::vector<std::string>& names,
                           const std::vector<ParallelAxis>& axes);

}  // namespace crema
