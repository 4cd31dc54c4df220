// Reads net and solver files: from text to an upgraded message that still knows where each layer
// was written. Every mistake in a file is one Error, "net.prototxt:12:5: layer "conv1": ...".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/prototxt/prototxt_source_map.h"
#include "net/prototxt/settings.h"
#include "net/prototxt/upgrade.h"
#include "proto/net.pb.h"
#include "proto/preparation.pb.h"
#include "proto/solver.pb.h"

namespace crema {

// A net as it was read. Indices are those of `net`, before any filtering.
struct NetFile {
  NetParameter net;  // upgraded
  std::string path;  // as given; the solver's path for a net inside a solver
  std::shared_ptr<const SourceMap> positions;
  Upgrade upgrade;             // upgrade log, and the origin of each layer
  NetPreparation preparation;  // of the inputs of a net for use, if comments of the file have it

  // "lenet.prototxt:34:3" of a layer's block.
  std::string where(int layer) const;
  // The same for a field of the layer, "convolution_param.kernel_size" or "bottom[1]"; the nearest
  // enclosing block when the field is not in the file or had another form before the upgrade.
  std::string where(int layer, const std::string& field) const;
  // The same for a field of the net itself: "state", "force_backward".
  std::string where(const std::string& field) const;

  std::string prefix;  // path of the net in its file: "net_param." inside a solver, else empty
};

// A solver as it was read: upgraded, its snapshot_prefix completed, its inner nets untouched.
struct SolverFile {
  SolverParameter solver;
  std::string path;
  std::shared_ptr<const SourceMap> positions;
  std::vector<Note> notes;
  std::shared_ptr<Settings> settings;  // for its nets, too; may be null
  // Nets that replace those written inside the solver, by field: "train_net_param",
  // "test_net_param[1]".
  std::map<std::string, NetFile> rewritten;

  // "solver.prototxt:3:1" for a field, "base_lr" or "test_iter[1]".
  std::string where(const std::string& field) const { return positions->where(field); }
};

// `settings` override the file; null: none.
NetFile read_net_file(const std::string& path, Settings* settings = nullptr);
// `name` replaces the path in messages.
NetFile parse_net_text(const std::string& text, const std::string& name,
                       Settings* settings = nullptr);

SolverFile read_solver_file(const std::string& path, std::shared_ptr<Settings> settings = nullptr);
SolverFile parse_solver_text(const std::string& text, const std::string& name,
                             std::shared_ptr<Settings> settings = nullptr);

// A net written inside a solver, or rewritten. `field` is "net_param", "train_net_param" or
// "test_net_param[1]".
NetFile inner_net(const SolverFile& file, const std::string& field);

}  // namespace crema
