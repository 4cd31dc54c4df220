// Makes the nets of a project before its data and files are written.
#pragma once

#include <cstdint>
#include <vector>

#include "net/plan/memory_use.h"
#include "proto/solver.pb.h"
#include "tools/project/net_text.h"

namespace crema {

// Makes the net in both phases with samples of this shape from its Data layers, without allocating
// memory; returns the memory of a training step. Error for a net that cannot be made; it names the
// layer.
MemoryKinds memory_of_step(const NetText& net, const SolverParameter& solver,
                           const std::vector<int64_t>& sample, int64_t batch);

// Error for a solver that no training accepts.
void check_solver(const SolverParameter& solver);

// Checks the project in `folder` as `crema check` does. Error for the first mistake; it names the
// file as it is in `shown`.
void check_project(const std::string& folder, const std::string& shown);

}  // namespace crema
