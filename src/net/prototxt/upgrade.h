// Upgrades files of older generations to today's form: V0 and V1 layers, net-level inputs,
// BatchNorm with three param blocks, solver_type. All code after the reader sees today's form only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"

namespace crema {

// One log line. Lines that Caffe's users know (and parse) keep Caffe's wording.
struct Note {
  Severity severity;
  std::string line;
};

// "file:line:column" of a field by its path, for errors; see SourceMap::where.
using Locate = std::function<std::string(const std::string& path)>;

struct Upgrade {
  bool changed = false;
  std::vector<Note> notes;
  // For each layer of the result, the path of the block it was written in: "layer[3]", "layers[3]",
  // or "input[0]" for the Input layer made from net-level inputs.
  std::vector<std::string> origins;
};

// `file` is the name in notes. Without `where`, errors name the file alone. Error when a net cannot
// be expressed in today's form (an unknown V0 type, inputs without shapes, both "layer" and
// "layers").
Upgrade upgrade_net(NetParameter* net, const std::string& file, const Locate& where = {});

// solver_type -> type. Nets inside the solver do not change.
Upgrade upgrade_solver(SolverParameter* solver, const std::string& file, const Locate& where = {});

// Completes snapshot_prefix as Caffe does when a run starts: if missing, the solver's path without
// its extension; if a folder, the solver's file name is appended.
std::vector<Note> complete_snapshot_prefix(SolverParameter* solver, const std::string& path);

void write_notes(Log& log, const std::vector<Note>& notes);

}  // namespace crema
