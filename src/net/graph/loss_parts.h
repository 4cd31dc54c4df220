// Whether the losses of a net can be computed by several ranks.
#pragma once

#include "device/communicator.h"
#include "net/graph/graph.h"

namespace crema {

// Error for a loss that the ranks would add up wrongly: if they share each batch, one whose parts
// cannot be combined (Layer::loss_parts); in any case a value that the sum over the ranks changes
// although backward reads it.
void check_loss_parts(const Graph& graph, const Communicator& world);

}  // namespace crema
