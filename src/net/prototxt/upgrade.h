// Files of older generations made equal to today's: V0 and V1 layers, net-level inputs, BatchNorm
// with three param blocks, solver_type. Everything behind the reader sees today's form only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"

namespace crema {

// One line for the log. What Caffe's users know (and parse) keeps Caffe's words.
struct Note {
  Severity severity;
  std::string line;
};

// "file:line:column" of a field by its path, for errors; see SourceMap::where.
using Locate = std::function<std::string(const std::string& path)>;

struct Upgrade {
  bool changed = false;
  std::vector<Note> notes;
  // For each layer of the result, the path of the block that it was written in: "layer[3]",
  // "layers[3]", or "input[0]" for the Input layer made of net-level inputs.
  std::vector<std::string> origins;
};

// `file` is the name in notes. Without `where`, errors name the file alone. Error when a net cannot
// be expressed today (an unknown V0 type, inputs without shapes, both "layer" and "layers").
Upgrade upgrade_net(NetParameter* net, const std::string& file, const Locate& where = {});

// solver_type -> type. Nets inside the solver stay as they are.
Upgrade upgrade_solver(SolverParameter* solver, const std::string& file, const Locate& where = {});

// What Caffe does next when a run starts: without a snapshot_prefix, the solver's path without its
// extension; a folder gets the solver's file name added.
std::vector<Note> complete_snapshot_prefix(SolverParameter* solver, const std::string& path);

void write_notes(Log& log, const std::vector<Note>& notes);

}  // namespace crema
