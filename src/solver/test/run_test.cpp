// The tests of a training. Ranks share the batches of a test, and all of them come to its results, in
// the same bits, because they decide by them: when to stop, which snapshot is the best, which
// learning rate follows.
#include "base/error.h"
#include "device/communicator.h"
#include "net/records.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/solver.h"
#include "solver/test/class_metrics.h"
#include "solver/test/pictures.h"
#include "solver/test/test_batches.h"
#include "solver/test/test_scores.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

// At the next first record, as a test before may have been interrupted. The passes are counted on:
// the loader has made their batches ahead.
void begin_epoch(Net& net, int batches, uint64_t* pass) {
  const auto each = static_cast<uint64_t>(batches);
  *pass = (*pass + each - 1) / each * each;
  net.clear_carried();
}

}  // namespace

void Solver::test_all() {
  stopped_ = false;  // by an earlier call
  run_tests();
  finish_snapshot();
}

void Solver::test_one(size_t net) {
  require(net < test_nets_.size(), "test net ", net, ": the solver has ", test_nets_.size(),
          test_nets_.size() == 1 ? " test net" : " test nets", ", numbered from 0");
  stopped_ = false;
  average_statistics(*net_);
  std::optional<AveragedWeights> averaged;
  if (file_.solver.test_ema()) averaged.emplace(*optimizer_);
  test(net);
  finish_snapshot();
}

void Solver::send_pictures() {
  event::Pictures filters = first_filters(*net_, options_.rgb);
  filters.iteration = iteration_;
  if (!filters.pictures.empty()) send_(filters);
  if (!mistakes_) return;
  event::Pictures mistakes = mistakes_->pictures();
  mistakes.iteration = iteration_;
  send_(mistakes);
}

void Solver::run_tests() {
  average_statistics(*net_);
  std::optional<AveragedWeights> averaged;
  if (file_.solver.test_ema()) averaged.emplace(*optimizer_);
  for (size_t i = 0; i < test_nets_.size() && !stopped_; ++i) test(i);
  if (early_stop_ && early_stop_->tests_since_best() >= file_.solver.early_stop().tests() &&
      !stopped_) {
    send_(event::EarlyStopped{iteration_, early_stop_->output(), early_stop_->best(),
                              early_stop_->tests_since_best()});
    stopped_ = true;
  }
}

void Solver::test(size_t number) {
  Net& net = *test_nets_[number];
  Communicator* const world = context_.world();
  const int batches = test_iterations_[number], id = test_numbers_[number];
  send_(event::TestBegin{iteration_, id, batches});
  const bool whole_epoch = net.options().whole_epochs;
  uint64_t& pass = test_passes_[number];
  if (whole_epoch) begin_epoch(net, batches, &pass);
  const uint64_t end = pass + static_cast<uint64_t>(batches);
  const TestBatches mine = test_batches(net, batches);
  const auto records_of_pass = [&] { return whole_epoch ? records_in(net, pass) : 1; };
  TestLoss loss;
  TestScores scores(file_.solver, net);
  ClassMetrics* const metrics = test_metrics_[number].get();
  if (metrics) metrics->clear();
  Mistakes* const mistakes = number == 0 ? mistakes_.get() : nullptr;
  // All batches before this rank's are as large as the first of all.
  if (mistakes)
    mistakes->clear(mine.first * (whole_epoch ? records_in(net, pass) : mistakes->batch()));
  pass += static_cast<uint64_t>(mine.first);
  std::optional<RankPause> pause(context_);  // the other ranks may have fewer batches
  for (int64_t i = mine.first; i < mine.end; ++i) {
    // Ranks agree about requests between iterations only: here they are at different batches.
    while (options_.action && !world) {
      const Action request = options_.action();
      if (request == Action::none) break;
      carry_out(request, false);
    }
    if (stopped_) return send_(event::TestInterrupted{iteration_, id});
    if (world) world->at_iteration(iteration_);
    const int64_t records = records_of_pass();
    net.forward(pass++);
    loss.add(net.loss(), records);  // always: it checks the labels
    scores.add(records);
    if (metrics) metrics->add();
    if (mistakes) mistakes->add();
    send_(event::TestBatch{id, static_cast<int>(i - mine.first) + 1,
                           static_cast<int>(mine.end - mine.first)});
  }
  pause.reset();
  pass = end;
  merge_ranks(context_, mine, &loss);
  merge_ranks(context_, mine, &scores);
  if (metrics) metrics->finish();
  if (metrics) merge_ranks(context_, mine, metrics);
  if (mistakes && mine.shared) mistakes->merge(*world);
  event::TestResult result{iteration_,       id,
                           std::nullopt,     scores.outputs(),
                           scores.classes(), file_.solver.show_per_class_result()};
  if (file_.solver.test_compute_loss()) result.loss = loss.mean();
  if (number == 0 && !result.outputs.empty()) rates_->observe_score(result.outputs[0].value);
  if (metrics) {
    for (const OutputValue& value : metrics->outputs()) result.outputs.push_back(value);
  }
  if (number == 0) last_test_ = result.outputs;
  send_(result);
  const bool writes = context_.rank() == 0;
  if (metrics && writes) send_confusion(number);
  if (number == 0 && options_.pictures && writes) send_pictures();
  observe_test(id, result.outputs);
}

}  // namespace crema
