// What a run says of itself at its start: when that was, hashes that tell which run a metrics line, a
// net or a weights file belongs to, the names of its classes, and its net.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/databases/class_names.h"
#include "net/graph/graph.h"
#include "net/net.h"
#include "proto/solver.pb.h"
#include "solver/events/events.h"

namespace crema {

// "2026-01-31T12:00:00Z".
std::string utc_now();
// Hash of a net as it was read (upgraded, all phases): equal for files that differ only in
// whitespace, comments and the generation of their format.
std::string hash_of_text(const NetParameter& net);
// Hash of the net and of how it is trained.
std::string hash_of_recipe(const NetParameter& net, const SolverParameter& solver);
// Hash of the values of all parameters: equal for equal weights of nets with equal
// fingerprint_of().
std::string hash_of_weights(Net& net);
// The fields of one value that are given and say how the net learns, by name, and the type in any
// case; texts without quotes. Files, displays, snapshots and the times of tests are left out.
std::vector<std::pair<std::string, std::string>> settings_in(SolverParameter solver);

// The names of the classes of the training data. None, and a warning, if there are not as many as the
// loss has scores.
ClassNames class_names_of_run(const Net& net, Log& log);
// The layers of a net, for readers that draw it.
event::NetGraph net_graph(const Graph& graph);

}  // namespace crema
