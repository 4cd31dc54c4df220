#include "tools/runs/train_nets.h"

#include "base/error.h"
#include "base/files.h"
#include "net/graph/filter.h"
#include "solver/fields/solver_nets.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/assume.h"

namespace crema {

namespace {

void clear_nets(SolverParameter* solver) {
  solver->clear_net();
  solver->clear_net_param();
  solver->clear_train_net();
  solver->clear_train_net_param();
  solver->clear_test_net();
  solver->clear_test_net_param();
}

// Removes the layers of other phases and stages, whose sources need no shapes.
void keep_layers_of(NetFile* net, const NetState& state, Log& log) {
  std::vector<int> kept;
  net->net =
      filter_net(net->net, state, log, &kept, [net](int layer) { return net->where(layer); });
  std::vector<std::string> origins;
  for (const int layer : kept) origins.push_back(net->upgrade.origins[layer]);
  net->upgrade.origins = origins;
}

}  // namespace

void take_model_flag(const std::string& model, SolverFile* file) {
  if (model.empty()) return;
  require(file_exists(find_file(model, folder_of(file->path))), "-model ", model,
          ": there is no such file");
  clear_nets(&file->solver);
  file->solver.set_net(model);
}

void set_train_net(const NetParameter& net, SolverFile* file) {
  clear_nets(&file->solver);
  *file->solver.mutable_net_param() = net;
  file->settings.reset();  // the net has them already
}

void take_assume_flag(Log& log, const AssumeFlags& flags, SolverFile* file) {
  if (flags.assume.empty() && flags.batch == 0) return;
  SourceReplacer replacer(log, flags.assume, flags.batch);
  const auto rewritten = [&](const NetSource& source, Phase phase) {
    NetFile net = open_net(*file, source);
    write_notes(log, net.upgrade.notes);
    net.upgrade.notes.clear();
    NetState state = source.state;
    if (phase == TRAIN) add_level_and_stages(flags, &state);
    keep_layers_of(&net, net_state(phase, net.net, state), log);
    replacer.replace(net.net, [&net](int layer) { return net.where(layer); });
    return net;
  };
  const NetFile train = rewritten(train_source(*file), TRAIN);
  std::vector<NetFile> tests;
  for (const NetSource& source : test_sources(*file))
    tests.push_back(source.tested() ? rewritten(source, TEST) : NetFile());
  replacer.finish();
  SolverParameter& solver = file->solver;
  clear_nets(&solver);
  file->rewritten.emplace("train_net_param", train);
  *solver.mutable_train_net_param() = train.net;
  for (size_t i = 0; i < tests.size(); ++i) {
    file->rewritten.emplace(cat("test_net_param[", i, "]"), tests[i]);
    *solver.add_test_net_param() = tests[i].net;
  }
}

}  // namespace crema
