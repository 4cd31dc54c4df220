#include "tools/tune/training_memory.h"

#include "base/files.h"
#include "net/graph/filter.h"
#include "net/graph/unfed_inputs.h"
#include "solver/compression/compressed_net.h"
#include "solver/iteration/optimizer.h"
#include "tools/flags/net_flags.h"

namespace crema {

std::pair<MemoryKinds, int64_t> memory_of_training(Context& context, const std::string& precision,
                                                   const SolverFile& file,
                                                   const NetSource& source) {
  const auto given = std::make_shared<const NetFile>(open_net(file, source));
  NetOptions options;
  options.state = net_state(TRAIN, given->net, source.state);
  options.folder = folder_of(given->path);
  options.where = [given](int layer) { return given->where(layer); };
  options.histories = kept_arenas(file.solver);
  options.precision = precision_of_flag(context, precision, file.solver.precision());
  NetFile net = *given;
  add_compression(context, file, &net, &options);
  refuse_unfed_inputs(net.net, options.state, options.where);
  Net made(context, net.net, options);
  MemoryKinds kinds = made.memory();
  kinds.history = kinds.parameters * options.histories;
  return {kinds, batch_source(made.graph()).size};
}

void make_test_nets(Context& context, const std::string& precision, const SolverFile& file) {
  for (const NetSource& source : test_sources(file)) {
    const auto given = std::make_shared<const NetFile>(open_net(file, source));
    NetOptions options;
    options.state = net_state(TEST, given->net, source.state);
    options.folder = folder_of(given->path);
    options.where = [given](int layer) { return given->where(layer); };
    options.precision = precision_of_flag(context, precision, file.solver.precision());
    refuse_unfed_inputs(given->net, options.state, options.where);
    const Net made(context, given->net, options);
  }
}

}  // namespace crema
