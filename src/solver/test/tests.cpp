#include "solver/test/tests.h"

#include "base/error.h"
#include "device/communicator.h"
#include "net/graph/unfed_inputs.h"
#include "net/records.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/test/class_metrics.h"
#include "solver/test/pictures.h"
#include "solver/test/test_batches.h"
#include "solver/test/test_scores.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

constexpr size_t kMostMistakes = 25;  // that are shown of a test

// At the next first record, as a test before may have been interrupted. The passes are counted on:
// the loader has made their batches ahead.
void begin_epoch(Net& net, int batches, uint64_t* pass) {
  const auto each = static_cast<uint64_t>(batches);
  *pass = (*pass + each - 1) / each * each;
  net.clear_carried();
}

}  // namespace

struct Tests::Tested {
  int number = 0;   // in the solver's file
  int batches = 0;  // of a test
  uint64_t passes = 0;
  std::unique_ptr<ClassMetrics> metrics;  // null: nothing is measured
  std::unique_ptr<DebugInfo> debug;       // null without debug_info
};

Tests::Tests(Run run) : run_(std::move(run)) {}
Tests::~Tests() = default;

Net& Tests::add(int number, const NetSource& source, const NetFile& file, NetOptions options) {
  options.whole_epochs = source.whole_epoch;
  const bool pictures = run_.pictures && nets_.empty();
  const bool confusions = run_.confusions && run_.metrics.empty();
  if (pictures || confusions) {
    options.kept = [=](const Graph& graph) {
      std::vector<int> values = pictures ? Mistakes::values(graph) : std::vector<int>();
      const std::vector<int> more =
          confusions ? ClassMetrics::unasked_values(graph) : std::vector<int>();
      values.insert(values.end(), more.begin(), more.end());
      return values;
    };
  }
  options.keep_blobs = options.keep_blobs || !run_.metrics.empty();
  nets_.push_back(std::make_unique<Net>(run_.context, file.net, options));
  Net& net = *nets_.back();
  if (!run_.fills_inputs) refuse_unfed_inputs(file.net, options.state, options.where);
  Tested& tested = tested_.emplace_back();
  tested.number = number;
  tested.batches = source.test_iter;
  if (source.whole_epoch) {
    try {
      tested.batches = static_cast<int>(check_whole_epochs(net).batches);
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      fail(run_.file.where("test_epoch"), ": test_epoch, test net (#", number, "): ", error.what());
    }
  }
  if (pictures && !Mistakes::values(net.graph()).empty())
    mistakes_ = std::make_unique<Mistakes>(net, kMostMistakes, run_.rgb);
  if (!run_.metrics.empty()) tested.metrics = std::make_unique<ClassMetrics>(net, run_.metrics);
  if (confusions && !ClassMetrics::unasked_values(net.graph()).empty())
    tested.metrics = std::make_unique<ClassMetrics>(net);
  if (run_.file.solver.debug_info()) {
    tested.debug = std::make_unique<DebugInfo>(
        net, [this](const std::string& line) { run_.send(event::Debug{line}); });
    tested.debug->enable(true);
  }
  return net;
}

void Tests::watch() {
  const SolverParameter& solver = run_.file.solver;
  std::vector<int> numbers;
  std::vector<std::vector<std::string>> metrics;
  for (const Tested& tested : tested_) {
    numbers.push_back(tested.number);
    metrics.push_back(tested.metrics ? tested.metrics->names() : std::vector<std::string>());
  }
  const auto watched = [&](WatchedOutput::For purpose) {
    return std::make_unique<WatchedOutput>(run_.file, purpose, nets_, numbers, metrics);
  };
  if (solver.has_keep_best()) keep_best_ = watched(WatchedOutput::For::keep_best);
  if (solver.has_early_stop()) {
    require(solver.early_stop().tests() > 0, run_.file.where("early_stop.tests"),
            ": early_stop: tests is ", solver.early_stop().tests(), ", it must be at least 1");
    early_stop_ = watched(WatchedOutput::For::early_stop);
  }
  if (!solver.has_plateau_test()) return;
  require(solver.lr_policy() == "plateau", run_.file.where("plateau_test"),
          ": plateau_test needs lr_policy: \"plateau\", but it is \"", solver.lr_policy(), "\"");
  plateau_test_ = watched(WatchedOutput::For::plateau_test);
}

uint64_t& Tests::passes(size_t net) { return tested_[net].passes; }

bool Tests::run_all(int64_t iteration) {
  average_statistics(run_.net);
  const SolverParameter& solver = run_.file.solver;
  std::optional<AveragedWeights> averaged;
  if (solver.test_ema()) averaged.emplace(run_.optimizer);
  for (size_t i = 0; i < nets_.size(); ++i) {
    if (!run(iteration, i)) return false;
  }
  if (!early_stop_ || early_stop_->tests_since_best() < solver.early_stop().tests()) return false;
  run_.send(event::EarlyStopped{iteration, early_stop_->output(), early_stop_->best(),
                                early_stop_->tests_since_best()});
  return true;
}

void Tests::run_one(int64_t iteration, size_t net) {
  require(net < nets_.size(), "test net ", net, ": the solver has ", nets_.size(),
          nets_.size() == 1 ? " test net" : " test nets", ", numbered from 0");
  average_statistics(run_.net);
  std::optional<AveragedWeights> averaged;
  if (run_.file.solver.test_ema()) averaged.emplace(run_.optimizer);
  run(iteration, net);
}

bool Tests::run(int64_t iteration, size_t number) {
  Net& net = *nets_[number];
  Tested& tested = tested_[number];
  Context& context = run_.context;
  Communicator* const world = context.world();
  const SolverParameter& solver = run_.file.solver;
  const int batches = tested.batches, id = tested.number;
  run_.send(event::TestBegin{iteration, id, batches});
  const bool whole_epoch = net.options().whole_epochs;
  uint64_t& pass = tested.passes;
  if (whole_epoch) begin_epoch(net, batches, &pass);
  const uint64_t end = pass + static_cast<uint64_t>(batches);
  const TestBatches mine = test_batches(net, batches);
  const auto records_of_pass = [&] { return whole_epoch ? records_in(net, pass) : 1; };
  TestLoss loss;
  TestScores scores(solver, net);
  ClassMetrics* const metrics = tested.metrics.get();
  if (metrics) metrics->clear();
  Mistakes* const mistakes = number == 0 ? mistakes_.get() : nullptr;
  // All batches before this rank's are as large as the first of all.
  if (mistakes)
    mistakes->clear(mine.first * (whole_epoch ? records_in(net, pass) : mistakes->batch()));
  pass += static_cast<uint64_t>(mine.first);
  std::optional<RankPause> pause(context);  // the other ranks may have fewer batches
  for (int64_t i = mine.first; i < mine.end; ++i) {
    if (run_.stops()) {
      run_.send(event::TestInterrupted{iteration, id});
      return false;
    }
    if (world) world->at_iteration(iteration);
    const int64_t records = records_of_pass();
    net.forward(pass++);
    loss.add(net.loss(), records);  // always: it checks the labels
    scores.add(records);
    if (metrics) metrics->add();
    if (mistakes) mistakes->add();
    run_.send(event::TestBatch{id, static_cast<int>(i - mine.first) + 1,
                               static_cast<int>(mine.end - mine.first)});
  }
  pause.reset();
  pass = end;
  merge_ranks(context, mine, &loss);
  merge_ranks(context, mine, &scores);
  if (metrics) metrics->finish();
  if (metrics) merge_ranks(context, mine, metrics);
  if (mistakes && mine.shared) mistakes->merge(*world);
  event::TestResult result{iteration,        id,
                           std::nullopt,     scores.outputs(),
                           scores.classes(), solver.show_per_class_result()};
  if (solver.test_compute_loss()) result.loss = loss.mean();
  if (number == 0 && !result.outputs.empty()) run_.rates.observe_score(result.outputs[0].value);
  if (metrics) {
    for (const OutputValue& value : metrics->outputs()) result.outputs.push_back(value);
  }
  if (number == 0) last_ = result.outputs;
  run_.send(result);
  const bool writes = context.rank() == 0;
  if (metrics && writes) send_confusion(iteration, tested);
  if (number == 0 && run_.pictures && writes) send_pictures(iteration);
  observe(iteration, id, result.outputs);
  return true;
}

void Tests::observe(int64_t iteration, int number, const std::vector<OutputValue>& results) {
  if (keep_best_ && keep_best_->observe(number, results).value_or(false))
    run_.keep_best(*keep_best_);
  if (early_stop_) early_stop_->observe(number, results);
  if (plateau_test_ && run_.rates.heeds_tests(iteration) &&
      plateau_test_->observe(number, results) &&
      run_.rates.observe_tests(plateau_test_->tests_since_best()))
    plateau_test_->wait_again();
}

// A file that cannot be written ends no training.
void Tests::send_confusion(int64_t iteration, const Tested& tested) {
  const int id = tested.number;
  const std::string& prefix = run_.file.solver.snapshot_prefix();
  const std::string csv =
      cat(prefix, prefix.empty() ? "" : "_", "confusion", id > 0 ? cat("_", id) : "", ".csv");
  try {
    std::optional<event::Confusion> confusion = tested.metrics->confusion(csv);
    if (!confusion) return;
    confusion->iteration = iteration;
    confusion->net = id;
    run_.send(*confusion);
  } catch (const Error& error) {
    run_.send(event::Warning{error.what()});
  }
}

void Tests::send_pictures(int64_t iteration) {
  event::Pictures filters = first_filters(run_.net, run_.rgb);
  filters.iteration = iteration;
  if (!filters.pictures.empty()) run_.send(filters);
  if (!mistakes_) return;
  event::Pictures mistakes = mistakes_->pictures();
  mistakes.iteration = iteration;
  run_.send(mistakes);
}

std::vector<WatchedOutput*> Tests::watched() const {
  std::vector<WatchedOutput*> all;
  for (WatchedOutput* one : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (one) all.push_back(one);
  }
  return all;
}

void Tests::add_memory(MemoryKinds* all) const {
  for (const auto& net : nets_) {
    const MemoryKinds of_test = net->memory();
    if (of_test.arena() > all->arena()) {
      all->blobs = of_test.blobs;
      all->workspace = of_test.workspace;
    }
    all->persistent += of_test.persistent;
    all->parameters += of_test.parameters;
    all->halves += of_test.halves;
    all->resident += of_test.resident;
  }
}

void Tests::store(SolverState* state) const {
  for (const WatchedOutput* one : watched()) one->store(state);
  for (const Tested& tested : tested_) state->add_test_passes(tested.passes);
}

void Tests::restore(const SolverState& state, const std::string& path) {
  for (int i = 0; i < static_cast<int>(tested_.size()); ++i)
    tested_[i].passes = i < state.test_passes_size() ? state.test_passes(i) : 0;
  for (WatchedOutput* one : watched()) one->restore(state, path);
}

}  // namespace crema
