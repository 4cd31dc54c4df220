// The layers of a net as an event, for readers that draw it.
#pragma once

#include "net/graph.h"
#include "solver/events.h"

namespace crema {

event::NetGraph net_graph(const Graph& graph);

}  // namespace crema
