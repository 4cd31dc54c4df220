#include "solver/check/check.h"

#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "kernels/optim/update_rule.h"
#include "layers/layer_facts.h"
#include "net/check/checks.h"
#include "net/graph/filter.h"
#include "solver/compression/compression_fields.h"
#include "solver/divergence/divergence_policy.h"
#include "solver/fields/epoch_fields.h"
#include "solver/fields/field_ranges.h"
#include "solver/fields/solver_nets.h"
#include "solver/iteration/optimizer.h"
#include "solver/rates/learning_rate.h"
#include "solver/rates/schedules.h"

namespace crema {
namespace {

// What the solver refuses when it is made. `counted`: the same with epochs in iterations.
void check_refused(const SolverFile& file, const SolverFile& counted, bool finds_weights,
                   Findings* findings) {
  const auto note = [&](const char* field, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      findings->push_back(
          finding_of(Severity::error, error.what(), place_of_message(file, error.what(), field)));
    }
  };
  const Findings numbers = out_of_range(file);
  findings->insert(findings->end(), numbers.begin(), numbers.end());
  note("max_epoch", [&] { check_epoch_fields(file); });
  note("lr_policy", [&] { check_learning_rate(counted.solver); });
  note("on_divergence", [&] { check_divergence(file); });
  note("solver", [&] { check_compression(file, finds_weights); });
  note("type", [&] { check_schedules(counted.solver, update_rule(file.solver.type())); });
}

// The epoch length of the net's first source with a known size, for one rank.
EpochLength known_length(const SolverFile& file, const CheckedNet& net) {
  for (int i = 0; i < net.layers(); ++i) {
    try {
      const auto facts = facts_of(net.layer(i), net.folder());
      if (!facts || facts->records <= 0 || facts->batch <= 0) continue;
      return {facts->records, facts->batch * std::max(1, file.solver.iter_size())};
    } catch (const Error&) {  // said where sources are checked
    }
  }
  return {};
}

SolverFile counted_in_iterations(const SolverFile& file, const EpochLength& length) {
  SolverFile counted = file;
  try {
    count_in_iterations(length, &counted);
  } catch (const Error&) {  // said by check_epoch_fields
  }
  return counted;
}

// Sources in phase TEST that are read endlessly, with test_epoch.
void check_test_epoch(const SolverFile& file, const CheckedNet& net, Findings* findings) {
  for (int i = 0; i < net.layers(); ++i) {
    const std::string& type = net.layer(i).type();
    const LayerFacts facts = facts_of(type);
    if (facts.kind != LayerKind::source || facts.content != SourceContent::given) continue;
    add(findings, Severity::error, file.where("test_epoch"), "test_epoch, but layer \"",
        net.layer(i).name(), "\" (", type,
        ") has no epochs: there is no last record; give the number of batches");
  }
}

// The test set is read once in a test: not less, which may be meant, and no record twice.
void check_test_size(const SolverFile& file, int number, int iterations, const SourceFacts& facts,
                     const std::string& source, Findings* findings) {
  if (facts.records <= 0 || facts.batch <= 0) return;
  const int64_t read = facts.batch * iterations,
                once = (facts.records + facts.batch - 1) / facts.batch;
  if (iterations == once || read == facts.records) return;
  add(findings, read < facts.records ? Severity::info : Severity::warning,
      file.where(cat("test_iter[", number, "]")), "test_iter is ", iterations, ": with batches of ",
      facts.batch, " a test reads ", read, " records, but \"", source, "\" has ", facts.records,
      ": ",
      read < facts.records ? "the rest is left for the next test, so that results differ by their "
                             "records"
                           : "some count more than once",
      "; test_iter: ", once, " reads all");
}

struct Sources {
  const SolverFile& file;
  Findings* findings;

  // `number`: of the test net, -1 for the training net; iterations: 0 with test_epoch.
  void check(const CheckedNet& net, int number, int iterations) const {
    bool first = true;
    std::vector<std::optional<SourceFacts>> known(net.layers());
    for (int i = 0; i < net.layers(); ++i) {
      std::optional<SourceFacts> facts;
      try {
        facts = facts_of(net.layer(i), net.folder());
      } catch (const Error& error) {
        const bool images = net.layer(i).type() == "ImageData";
        add(findings, Severity::error,
            net.where(i, images ? "image_data_param.source" : "data_param.source"), "layer \"",
            net.layer(i).name(), "\": ", error.what());
      }
      if (!facts) continue;
      known[i] = facts;
      check_order(net, i, *facts, findings);
      check_labels(net, i, *facts, findings);
      check_class_names(net, i, findings);
      check_values(net, i, *facts, findings);
      check_centre(net, i, *facts, file.solver.base_lr(), findings);
      check_rbm_data(net, i, *facts, findings);
      check_objects(net, i, *facts, findings);
      if (iterations > 0 && first)
        check_test_size(file, number, iterations, *facts, net.layer(i).name(), findings);
      first = false;
    }
    check_in_step(net, known, findings);
  }
};

// The field with the records of a source; "" where there is none.
std::string source_of(const LayerParameter& layer) {
  return layer.type() == "Data"        ? layer.data_param().source()
         : layer.type() == "ImageData" ? layer.image_data_param().source()
         : layer.type() == "HDF5Data"  ? layer.hdf5_data_param().source()
                                       : "";
}

std::string means_of(const TransformationParameter& transform) {
  std::vector<std::string> means;
  for (const float mean : transform.mean_value()) means.push_back(cat(mean));
  return transform.has_mean_file() ? transform.mean_file() : join(means, ", ");
}

// Tests that see other numbers than the training, or only what it has seen.
void check_against_training(const CheckedNet& train, const CheckedNet& test, Findings* findings) {
  for (int i = 0; i < test.layers(); ++i) {
    const LayerParameter& tested = test.layer(i);
    if (source_of(tested).empty() || tested.top_size() == 0) continue;
    for (int j = 0; j < train.layers(); ++j) {
      const LayerParameter& trained = train.layer(j);
      if (source_of(trained).empty() || trained.top_size() == 0 || trained.top(0) != tested.top(0))
        continue;
      const TransformationParameter &a = trained.transform_param(), &b = tested.transform_param();
      const bool scales = a.scale() != b.scale();
      if (scales || means_of(a) != means_of(b)) {
        const auto text = [](const std::string& means) {
          return means.empty() ? std::string("not given") : means;
        };
        add(findings, Severity::warning, test.where(i, "transform_param"), "layer \"",
            tested.name(), "\": ", scales ? "scale" : "the mean", " is ",
            scales ? cat(b.scale()) : text(means_of(b)), " in tests, but ",
            scales ? cat(a.scale()) : text(means_of(a)), " in the training (\"", trained.name(),
            "\"): the net is tested with other numbers than it has learned from; give both the "
            "same");
      }
      // A layer of both phases is that of a net without a test set.
      if (source_of(trained) == source_of(tested) &&
          trained.SerializeAsString() != tested.SerializeAsString()) {
        add(findings, Severity::info, test.where(i, ""), "layer \"", tested.name(),
            "\": tests read the training data (", source_of(tested),
            "): they do not show how well new data are recognised");
      }
    }
  }
}

void check_all_weights(const SolverFile& file, const CheckedNet& net,
                       const std::vector<std::string>& lists, Findings* findings) {
  for (const std::string& list : lists) {
    for (const std::string& name : split(list, ',')) {
      const std::string path = find_file(std::string(trim(name)), folder_of(file.path));
      if (trim(name).empty()) continue;
      try {
        check_weights(net, path, file.where("weights"), findings);
      } catch (const Error& error) {
        add(findings, Severity::error, file.where("weights"), error.what());
      }
    }
  }
}

}  // namespace

Findings check_training(const SolverFile& file, const CheckOptions& options) {
  Findings findings;
  NetSource source = train_source(file);
  source.state.MergeFrom(options.state);
  const NetFile train = open_net(file, source);
  const CheckedNet net(train, net_state(TRAIN, train.net, source.state));
  const bool by_epochs = !first_epoch_field(file.solver).empty();
  const EpochLength length =
      by_epochs && options.reads_data ? known_length(file, net) : EpochLength();
  // Any length says whether fields are there and positive.
  const SolverFile counted =
      counted_in_iterations(file, length.records > 0 ? length : EpochLength{1000, 1});
  check_refused(file, counted, options.reads_weights, &findings);
  const bool refused = !findings.empty();
  std::vector<std::string> weights = options.weights;
  if (weights.empty()) weights.assign(file.solver.weights().begin(), file.solver.weights().end());

  if (!refused)
    check_solver_fields(counted, sums_losses(net), !by_epochs || length.records > 0, &findings);
  const bool has_weights = options.resumes || !weights.empty();
  check_unread(net, &findings);
  check_global_stats(net, has_weights, &findings);
  check_batch_norm(net, &findings);
  check_learning(net, has_weights, &findings);
  const bool proportional = !refused && update_rule(file.solver.type()).proportional;
  if (proportional) check_loss_sum(net, file.solver.base_lr(), &findings);
  if (!refused)
    check_rbm(net, proportional ? file.solver.base_lr() : 0, file.solver.weight_decay(),
              has_weights, &findings);
  if (options.reads_weights && !options.resumes) check_all_weights(file, net, weights, &findings);

  const Sources sources{file, &findings};
  if (options.reads_data) sources.check(net, -1, 0);
  const std::vector<NetSource> tests = test_sources(file);
  for (size_t i = 0; i < tests.size(); ++i) {
    if (!tests[i].tested()) continue;
    const NetFile test = open_net(file, tests[i]);
    const CheckedNet checked(test, net_state(TEST, test.net, tests[i].state));
    check_learning(checked, has_weights, &findings);
    check_against_training(net, checked, &findings);
    if (options.reads_data) sources.check(checked, static_cast<int>(i), tests[i].test_iter);
    if (tests[i].whole_epoch) check_test_epoch(file, checked, &findings);
  }
  tidy(&findings);
  return findings;
}

int64_t largest_batch_in(const MemoryKinds& kinds, int64_t batch, size_t available) {
  const size_t fixed = kinds.total() - kinds.blobs;
  const bool known = available != std::numeric_limits<size_t>::max();  // not on a CPU
  if (!known || fixed >= available || kinds.blobs == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(available - fixed) * static_cast<double>(batch) /
                              static_cast<double>(kinds.blobs));
}

}  // namespace crema
