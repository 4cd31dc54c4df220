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

void set_row_inputs(Net& net, const Row& row);

// "2,3".
std::string extents_of(const Shape& shape);

}  // namespace crema
