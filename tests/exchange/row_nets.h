// The layer rows of tests/layers/rows as nets for inference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/row.h"
#include "net/net.h"

namespace crema {

// The row's layer behind an Input for each bottom, with parameters that are all different. Null: a row
// for training, for an error, or of a type that only the planner makes.
std::unique_ptr<Net> net_of_row(Context& context, const Row& row);

// The same of a whole net's text. Error for one that is none.
std::unique_ptr<Net> net_of_text(Context& context, const std::string& text);

void set_row_inputs(Net& net, const Row& row);

// How the values differ by more than the tolerance times the largest one; "" if they do not.
std::string difference_of(const std::vector<float>& expected, const std::vector<float>& found,
                          double tolerance);

// A variable of the environment, such as $CC.
std::string setting(const char* variable, const char* otherwise);

// "2,3".
std::string extents_of(const Shape& shape);

}  // namespace crema
