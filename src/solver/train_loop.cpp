// The loop: iterations with the tests, displays and snapshots between them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/ceil_div.h"
#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "solver/compression/pruning.h"
#include "solver/compression/rounding.h"
#include "solver/divergence/divergence_guard.h"
#include "solver/events/parameter_histograms.h"
#include "solver/events/run_identity.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/iteration.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshots.h"
#include "solver/snapshot/state_file.h"
#include "solver/snapshot/training_copy.h"
#include "solver/solver.h"
#include "solver/test/test_scores.h"
#include "solver/test/tests.h"

namespace crema {
namespace {

// Reading a loss makes the host wait for a GPU. Where no display needs it, this interval is enough
// to notice bad labels and losses that are not finite.
constexpr int kWatchEvery = 100;

bool falls_due(int64_t iteration, int interval) {
  return interval > 0 && iteration % interval == 0;
}

// Removes what killed runs left in the snapshot folder.
void remove_temporary_snapshots(const SolverParameter& solver, Log& log) {
  if (!solver.has_snapshot_prefix()) return;
  const std::string folder = folder_of(solver.snapshot_prefix());
  for (const std::string& path : remove_leftovers(folder, TemporaryEntry::Kind::file))
    log.info(cat("Removed ", path, ", which a run that was killed has left."));
}

}  // namespace

void Solver::solve() {
  run([this] { begin_run(); });
  run([this] { train_to_end(); });
}

void Solver::step(int64_t iterations) {
  const int64_t end = iteration_ + iterations;
  keep_start();
  run([&] { train(end - iteration_); });
}

// A lost device takes the weights with it: adds to the error which snapshot to resume from. After a
// divergence that on_divergence: ROLLBACK covers, the work begins again from an earlier iteration.
// Whatever ends the work, a snapshot that is being written is finished.
void Solver::run(const std::function<void()>& work) {
  try {
    for (;;) {
      try {
        return work();
      } catch (const Diverged& diverged) {
        // Rank 0 tells the user.
        if (!guard_->rolls_back() && context_.rank() > 0) throw RankLost(diverged.what(), true);
        if (!guard_->rolls_back()) throw;
        roll_back();
      }
    }
  } catch (const DeviceLost& lost) {
    snapshots_->finish();
    throw DeviceLost(
        cat("in iteration ", iteration_, ": ", lost.what(), ". ", snapshots_->resume_hint()));
  } catch (...) {
    snapshots_->finish();
    throw;
  }
}

void Solver::begin_run() {
  const SolverParameter& solver = file_.solver;
  require(solver.has_max_iter(), file_.path,
          ": max_iter is missing: say how many iterations to train, for example "
          "max_iter: 10000, or max_epoch: 10");
  check_snapshot_size(file_, *net_, *optimizer_);
  if (context_.rank() == 0) {
    if (solver.snapshot_after_train()) check_snapshot_folder(solver);
    remove_temporary_snapshots(solver, context_.log());
  }
  identity_.weights = hash_of_weights(*net_);
  if (context_.rank() == 0)
    identity_.classes = join(class_names_of_run(*net_, context_.log()).names, "\n");
  const EpochLength length = epoch_length_.records > 0
                                 ? epoch_length_
                                 : crema::epoch_length(*net_, solver.iter_size(), false);
  send_(event::Start{net_->name(), solver.type(), solver.lr_policy(), iteration_, solver.max_iter(),
                     solver.iter_size(), seed_, identity_,
                     length.records > 0 ? length.updates(1) : 0, settings_in(solver)});
  send_(net_graph(net_->graph()));
  if (epochs_) epochs_->begin(iteration_);
  keep_start();
}

void Solver::train_to_end() {
  const SolverParameter& solver = file_.solver;
  train(solver.max_iter() - iteration_);
  // Whether its time has come or a signal asked for it: a training must not silently lose its last
  // state.
  const bool last_is_missing = solver.snapshot_after_train() &&
                               !snapshots_->regular_after(iteration_) &&
                               snapshots_->last_written() != iteration_;
  if (agreed(context_, last_is_missing || snapshots_->failed())) {
    snapshot();
  } else {
    average_statistics(*net_);
    compare_weights(*net_, iteration_);
  }
  if (stopped()) return send_(event::End{iteration_, true});
  if (falls_due(iteration_, solver.display())) {
    read_losses(iteration_ - 1);
    net_->forward(train_passes_);
    if (GradientExchange* const exchange = ranks_->exchange()) {
      exchange->begin_losses();
      exchange->finish();
    }
    const double loss = net_->loss();
    losses_.add(iteration_, loss);
    guard_->judge(iteration_, loss, false);
    send_(event::FinalLoss{iteration_, losses_.mean(iteration_)});
  }
  if (test_is_due_after(iteration_)) test_all();
  end_epoch();
  send_(event::End{iteration_, false});
}

void Solver::train(int64_t iterations) {
  const int64_t end = iteration_ + iterations;
  requests_->reset();
  snapshots_->start_clock();
  guard_->begin(iteration_, train_passes_);
  progress_.start(iteration_, net_->waited());
  while (iteration_ < end && !stopped()) {
    set_rounding();
    const bool tests = iteration_ > 0 || file_.solver.test_initialization();
    if (tests && test_is_due_after(iteration_)) run_tests();
    if (stopped()) break;
    end_epoch();
    if (pruning_) prune();
    const int64_t at_once = iterations_->at_once(iteration_);
    if (at_once > 1 && uninterrupted(at_once, end)) {
      train_several(at_once);
    } else {
      train_iteration();
    }
    requests_->obey(iteration_);
  }
  // Including iterations whose loss was not displayed.
  read_losses(iteration_ - 1);
  if (context_.device() == Device::gpu) net_->check();
  snapshots_->finish();
}

// Whether the next iterations run without interruption: no reading of the loss, no test, no
// snapshot, not the end.
bool Solver::uninterrupted(int64_t iterations, int64_t end) const {
  if (iteration_ + iterations > end || !callbacks_.empty()) return false;
  for (int64_t i = iteration_; i < iteration_ + iterations; ++i) {
    if (falls_due(i, file_.solver.display()) || falls_due(i, kWatchEvery) ||
        falls_due(i, options_.histograms) || records_weights_at(i))
      return false;
    if (i > iteration_ &&
        (ranks_->agree_at(i) || test_is_due_after(i) || snapshots_->regular_after(i) ||
         (rounding_ && i == rounding_->start()) || (pruning_ && pruning_->is_due(i))))
      return false;
  }
  return true;
}

// With each display, but not more often than every 20 iterations, as it takes time for large nets; and
// in the first iterations, where most that differs from another run does so.
bool Solver::records_weights_at(int64_t iteration) const {
  constexpr int kLeast = 20;
  constexpr int64_t kFirst = 64;
  if (!options_.records) return false;
  if (options_.records_all_weights) return true;
  const auto number = static_cast<uint64_t>(iteration);
  const int display = file_.solver.display() > 0 ? file_.solver.display() : kWatchEvery;
  return (iteration <= kFirst && std::popcount(number) <= 1) ||
         falls_due(iteration, display * ceil_div(kLeast, display));
}

void Solver::train_several(int64_t count) {
  iterations_->begin({iteration_, train_passes_, count});
  train_passes_ += count * file_.solver.iter_size();
  for (int64_t i = 0; i < count; ++i) {
    next_rate(false);
    ++iteration_;
  }
  send_(event::Step{iteration_, file_.solver.max_iter(), net_->waited()});
}

void Solver::train_iteration() {
  for (const IterationCallback& callback : callbacks_) {
    if (callback.on_start) callback.on_start();
  }
  const bool shown = falls_due(iteration_, file_.solver.display()),
             watched = falls_due(iteration_, kWatchEvery),
             histograms = falls_due(iteration_, options_.histograms);
  if (debug_) debug_->enable(shown);
  if (shown || watched) guard_->watch_weights(iteration_);
  if (records_weights_at(iteration_))
    send_(event::WeightHashes{iteration_, hashes_of_parameters(*net_)});
  const bool debug = debug_ && debug_->enabled();
  const bool called = std::any_of(callbacks_.begin(), callbacks_.end(), [](const auto& callback) {
    return static_cast<bool>(callback.on_gradients_ready);
  });
  const uint64_t pass = train_passes_;
  train_passes_ += file_.solver.iter_size();
  iterations_->begin({iteration_, pass, 1, debug || histograms || called, watched && !debug});

  bool updates = true;
  if (iterations_->knows_losses()) {
    unread_ = iteration_;
    updates = read_losses(iteration_);
  } else if (shown || watched) {
    read_losses(iteration_);
  }
  if (shown) display();
  const double rate = next_rate(shown);
  if (histograms) send_histograms();
  if (updates) update(rate, shown, debug);
  ++iteration_;
  send_(event::Step{iteration_, file_.solver.max_iter(), net_->waited()});
}

void Solver::update(double rate, bool shown, bool debug) {
  for (const IterationCallback& callback : callbacks_) {
    if (callback.on_gradients_ready) callback.on_gradients_ready();
  }
  if (debug) debug_->before_update();
  const bool status = file_.solver.enable_clip_gradient_status();
  const auto clipped = iterations_->end(iteration_, rate, shown && status);
  if (clipped && status)
    send_(event::GradientsClipped{iteration_, clipped->norm, clipped->limit, clipped->scale});
  if (debug) debug_->after_update();
}

// Reads the losses up to iteration `last`, which a GPU keeps until they are needed. Whether the update
// of the last one is to be done.
bool Solver::read_losses(int64_t last) {
  bool updates = true;
  if (last < unread_) return updates;
  std::vector<double> losses = iterations_->losses(unread_, last);
  if (options_.records) send_(event::Losses{unread_, losses});
  for (const double loss : losses) {
    const int64_t iteration = unread_++;
    losses_.add(iteration, loss);
    if (const auto usual = options_.records ? spikes_.look_at(iteration, loss) : std::nullopt)
      send_(event::LossSpike{iteration, loss, *usual});
    updates = guard_->judge(iteration, loss);
    if (rates_->follows_losses()) rates_->observe_loss(losses_.mean(iteration), iteration);
  }
  return updates;
}

double Solver::loss() {
  read_losses(iteration_ - 1);
  return losses_.next() > 0 ? losses_.mean(iteration_ - 1)
                            : std::numeric_limits<double>::quiet_NaN();
}

double Solver::rate() const { return rates_->at(iteration_); }

double Solver::next_rate(bool display) {
  if (display) rates_->read_device();
  const double rate = rates_->advance(iteration_);
  if (const auto step = rates_->take_step(iteration_)) send_(*step);
  if (display) send_(event::LearningRate{iteration_, rate});
  return rate;
}

void Solver::display() {
  const Progress::Span span = progress_.display(iteration_, net_->waited());
  send_(event::Display{iteration_, span.iterations_per_second, span.seconds, file_.solver.display(),
                       losses_.mean(iteration_), values_of_ranks(*net_), span.waited});
  if (!span.starves) return;
  send_(event::Warning{cat("The training waits ", std::lround(100 * span.waited),
                           " % of its time for ", net_->waiting_hint())});
  progress_.leave_out();  // finding out takes time
}

float Solver::gradient_scale() const {
  return 1 / static_cast<float>(file_.solver.iter_size()) / iterations_->loss_scale();
}

void Solver::send_histograms() {
  for (event::Histogram& histogram : parameter_histograms(*net_, gradient_scale())) {
    histogram.iteration = iteration_;
    send_(histogram);
  }
}

bool Solver::test_is_due_after(int64_t updates) const {
  const SolverParameter& solver = file_.solver;
  return falls_due(updates, solver.test_interval(), solver.test_interval_epoch(), epoch_length_) ||
         (epochs_ && epochs_->ends_after(updates));
}

// After the test at its end.
void Solver::end_epoch() {
  if (epochs_ && epochs_->ends_after(iteration_)) send_(epochs_->end(iteration_, tests_->last()));
}

void Solver::prune() {
  const std::string said = pruning_->follow(iteration_);
  if (!said.empty()) context_.log().info(cat("Iteration ", iteration_, ": ", said));
}

// As `quantize` in the solver says for the next iteration.
void Solver::set_rounding() {
  if (!rounding_) return;
  const bool rounds = rounding_->is_on(iteration_);
  if (rounds && !net_->options().rounds)
    context_.log().info(cat("Iteration ", iteration_, ": rounding begins"));
  net_->set_rounding(rounds);
  for (const std::unique_ptr<Net>& test : test_nets()) test->set_rounding(rounds);
}

void Solver::run_tests() {
  set_rounding();
  if (tests_->run_all(iteration_)) requests_->stop();
}

void Solver::test_all() {
  requests_->reset();  // of an earlier call
  run_tests();
  snapshots_->finish();
}

void Solver::test_one(size_t net) {
  requests_->reset();
  set_rounding();
  tests_->run_one(iteration_, net);
  snapshots_->finish();
}

void Solver::snapshot() { snapshots_->write(iteration_); }

void Solver::keep_start() {
  guard_->keep_start([this](SolverState* state) { store(state); });
}

// Weights, history and counters go back to the last snapshot, or to the start of the run. The data do
// not: they go on behind the batch that diverged, so that the same batch does not meet the same
// weights again.
void Solver::roll_back() {
  const uint64_t passes = train_passes_;
  const float scale = rates_->scale() * file_.solver.rollback_factor();
  // Rank 0 knows what could be written.
  const std::string path = of_rank_0(context_, snapshots_->last_state());
  if (!path.empty()) {
    SolverState state = read_solver_state(path);
    state.set_rollback_scale(scale);
    restore(state, path);
  } else {
    guard_->start()->set_rollback_scale(scale);
    guard_->restore_start_weights();
    restore(*guard_->start(), "the start of the run");
    snapshots_->forget_last();
    identity_.resumed_from = "";
  }
  train_passes_ = passes;
  if (epochs_) epochs_->begin(iteration_);
  snapshots_->forgive();  // what could not be written is no longer wanted
  send_(guard_->rolled_back(iteration_, path));
}

}  // namespace crema
