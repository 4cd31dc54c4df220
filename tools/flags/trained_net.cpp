#include "tools/flags/trained_net.h"

#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "net/graph/filter.h"
#include "solver/compression/compressed_net.h"
#include "solver/fields/freeze.h"
#include "solver/fields/solver_nets.h"
#include "solver/iteration/optimizer.h"
#include "tools/inputs/assume.h"

namespace crema {

NetInput read_trained_net(ProgramLog& log, Context& context, const TrainedNetFlags& flags,
                          const SolverFile& file) {
  const NetSource source = train_source(file);
  const auto given = std::make_shared<const NetFile>(open_net(file, source));
  write_notes(log.library(), given->upgrade.notes);
  NetState state = source.state;
  add_level_and_stages(flags, &state);
  NetInput input;
  input.options.state = net_state(TRAIN, given->net, state);
  input.options.folder = folder_of(given->path);
  input.options.where = [given](int layer) { return given->where(layer); };
  input.options.frozen = frozen_layers(file);
  input.options.histories = kept_arenas(file.solver);
  NetFile net = *given;
  add_compression(context, file, &net, &input.options);
  std::vector<int> kept;
  input.net = filter_net(net.net, input.options.state, log.library(), &kept, input.options.where);
  input.options.where = [where = input.options.where, kept](int layer) {
    return where(kept[layer]);
  };
  SourceReplacer replacer(log, flags.assume, flags.batch);
  replacer.replace(input.net, input.options.where);
  replacer.finish();
  if (file.settings) file.settings->require_used();
  return input;
}

}  // namespace crema
