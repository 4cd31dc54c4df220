#include "tools/project/first_look.h"

#include <algorithm>

#include "base/error.h"
#include "net/graph/filter.h"
#include "net/net.h"
#include "solver/check/check.h"
#include "solver/fields/field_ranges.h"
#include "solver/iteration/optimizer.h"
#include "solver/rates/learning_rate.h"
#include "tools/project/net_edits.h"
#include "tools/project/project.h"
#include "tools/tune/training_memory.h"

namespace crema {

namespace {

// A Data layer as one that needs no database.
void assume_samples(const std::vector<int64_t>& sample, int64_t batch, LayerParameter* layer) {
  layer->set_type("DummyData");
  layer->clear_data_param();
  layer->clear_transform_param();
  auto* const params = layer->mutable_dummy_data_param();
  params->clear_shape();
  for (int top = 0; top < layer->top_size(); ++top) {
    auto* const shape = params->add_shape();
    shape->add_dim(batch);
    if (top > 0) continue;
    for (const int64_t side : sample) shape->add_dim(side);
  }
}

}  // namespace

MemoryKinds memory_of_step(const NetText& net, const SolverParameter& solver,
                           const std::vector<int64_t>& sample, int64_t batch) {
  Context context(Device::cpu);
  context.set_log(silent_log());
  MemoryKinds kinds;
  for (const Phase phase : {TEST, TRAIN}) {
    NetParameter assumed = net.net();
    for (LayerParameter& layer : *assumed.mutable_layer()) {
      if (layer.type() == "Data")
        assume_samples(sample, phase == TRAIN ? batch : layer.data_param().batch_size(), &layer);
    }
    NetOptions options;
    options.state = net_state(phase, assumed, NetState());
    options.histories = kept_arenas(solver);
    Net made(context, assumed, options);
    if (phase == TRAIN) {
      kinds = made.memory();
      kinds.history = kinds.parameters * options.histories;
    }
  }
  return kinds;
}

void check_solver(const SolverParameter& solver) {
  const SolverFile file =
      parse_solver_text(solver_text(solver, ""), "solver.prototxt", std::make_shared<Settings>());
  for (const Finding& finding : out_of_range(file)) fail(finding.text);
  check_learning_rate(solver);
}

void check_project(const std::string& folder, const std::string& shown) {
  const auto refuse = [&](std::string text) {
    for (size_t at; (at = text.find(folder)) != std::string::npos;)
      text.replace(at, folder.size(), shown);
    fail(text);
  };
  try {
    const SolverFile file =
        read_solver_file(folder + "/solver.prototxt", std::make_shared<Settings>());
    CheckOptions options;
    options.reads_weights = false;
    for (const Finding& finding : check_training(file, options)) {
      if (finding.severity == Severity::error) fail(finding.where, ": ", finding.text);
    }
    Context context(Device::cpu);
    context.set_log(silent_log());
    memory_of_training(context, "", file, train_source(file));
    make_test_nets(context, "", file);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace crema
