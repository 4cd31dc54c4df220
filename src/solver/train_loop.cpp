#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "solver/events/parameter_histograms.h"
#include "solver/events/run_identity.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshots.h"
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

bool waits_for_gradients(const IterationCallback& callback) {
  return static_cast<bool>(callback.on_gradients_ready);
}

// Removes what killed runs left in the snapshot folder.
void remove_temporary_snapshots(const SolverParameter& solver, Log& log) {
  if (!solver.has_snapshot_prefix()) return;
  const std::string folder = folder_of(solver.snapshot_prefix());
  for (const std::string& path : remove_leftovers(folder, TemporaryEntry::Kind::file))
    log.info(cat("Removed ", path, ", which a run that was killed has left."));
}

}  // namespace

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
        if (!rolls_back() && context_.rank() > 0) throw RankLost(diverged.what(), true);
        if (!rolls_back()) throw;
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

void Solver::solve() {
  run([this] { begin_run(); });
  run([this] { train_to_end(); });
}

void Solver::step(int64_t iterations) {
  const int64_t end = iteration_ + iterations;
  keep_start();
  run([&] { train(end - iteration_); });
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
  if (stopped_) return send_(event::End{iteration_, true});
  if (falls_due(iteration_, solver.display())) {
    read_losses(iteration_ - 1);
    net_->forward(train_passes_);
    if (exchange_) {
      exchange_->begin_losses();
      exchange_->finish();
    }
    watch(iteration_, net_->loss(), false);
    send_(event::FinalLoss{iteration_, losses_.mean(iteration_)});
  }
  if (test_is_due()) test_all();
  end_epoch();
  send_(event::End{iteration_, false});
}

void Solver::train(int64_t iterations) {
  const SolverParameter& solver = file_.solver;
  const int64_t end = iteration_ + iterations;
  stopped_ = false;
  snapshots_->start_clock();
  first_iteration_ = iteration_;
  first_pass_ = train_passes_;
  progress_.start(iteration_, net_->waited());
  while (iteration_ < end && !stopped_) {
    if (test_is_due() && (iteration_ > 0 || solver.test_initialization()))
      stopped_ |= tests_->run_all(iteration_);
    if (stopped_) break;
    end_epoch();
    const int64_t at_once = gpu_ && !debug_ ? gpu_->at_once(iteration_) : 1;
    at_once > 1 && uninterrupted(at_once, end) ? train_several(at_once) : train_iteration();
    obey();
  }
  // Including iterations whose loss was not displayed.
  read_losses(iteration_ - 1);
  if (gpu_) net_->check();
  snapshots_->finish();
}

// Whether the next iterations run without interruption: no reading of the loss, no test, no
// snapshot, not the end.
bool Solver::uninterrupted(int64_t iterations, int64_t end) const {
  const SolverParameter& solver = file_.solver;
  if (iteration_ + iterations > end || !callbacks_.empty()) return false;
  for (int64_t i = iteration_; i < iteration_ + iterations; ++i) {
    if (falls_due(i, solver.display()) || falls_due(i, kWatchEvery) ||
        falls_due(i, options_.histograms))
      return false;
    const bool between = i > iteration_;
    if (between && agreement_ && i == agreement_->next()) return false;
    if (between && (regular_test_after(i) || snapshots_->regular_after(i) ||
                    (epochs_ && epochs_->ends_after(i))))
      return false;
  }
  return true;
}

void Solver::train_several(int64_t count) {
  gpu_->run(iteration_, train_passes_, count);
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
  const bool shown = falls_due(iteration_, file_.solver.display());
  if (debug_) debug_->enable(shown);
  if (shown || falls_due(iteration_, kWatchEvery)) watch_weights();
  gpu_ ? gpu_iteration(shown) : cpu_iteration(shown);
  ++iteration_;
  send_(event::Step{iteration_, file_.solver.max_iter(), net_->waited()});
}

void Solver::call_before_update() {
  for (const IterationCallback& callback : callbacks_) {
    if (callback.on_gradients_ready) callback.on_gradients_ready();
  }
}

void Solver::cpu_iteration(bool shown) {
  const int iter_size = file_.solver.iter_size();
  const bool watched = falls_due(iteration_, kWatchEvery) && !(debug_ && debug_->enabled());
  double loss = 0;
  for (int micro = 0; micro < iter_size; ++micro) {
    if (watched && micro == 0) {
      forward_watched();
    } else {
      net_->forward(train_passes_++);
    }
    if (exchange_) {
      exchange_->begin_losses();
      const bool sends = micro + 1 == iter_size && !optimizer_->sharded();
      const auto after = [this](int node) { exchange_->after_node(node); };
      net_->backward(micro > 0, {}, {}, sends ? after : std::function<void(int)>());
      exchange_->finish();
    } else {
      net_->backward(micro > 0);
    }
    if (epochs_) epochs_->add();  // with the losses of all ranks
    if (debug_ && debug_->enabled()) debug_->norms();
    loss += net_->loss();
  }
  const bool updates = watch(iteration_, loss / iter_size);
  rates_->observe_loss(losses_.mean(iteration_), iteration_);
  if (shown) display();
  const double rate = next_rate(shown);
  const bool debug = debug_ && debug_->enabled();
  if (falls_due(iteration_, options_.histograms)) send_histograms();
  if (!updates) return;
  call_before_update();
  if (debug) debug_->before_update();
  if (optimizer_->sharded()) optimizer_->reduce_gradients();
  const auto clipped = optimizer_->update(rate, iteration_);
  if (clipped && file_.solver.enable_clip_gradient_status()) {
    send_(event::GradientsClipped{iteration_, clipped->norm, clipped->limit, clipped->scale});
  }
  if (debug) debug_->after_update();
}

void Solver::gpu_iteration(bool shown) {
  const bool debug = debug_ && debug_->enabled();
  const bool histograms = falls_due(iteration_, options_.histograms);
  const bool called = std::any_of(callbacks_.begin(), callbacks_.end(), waits_for_gradients);
  const bool halts = debug || histograms || called;
  if (halts) {  // gradients are looked at before the update
    gpu_->forward_backward(iteration_, train_passes_);
    if (debug) debug_->norms();
  } else {
    gpu_->run(iteration_, train_passes_);
  }
  train_passes_ += file_.solver.iter_size();
  if (shown || falls_due(iteration_, kWatchEvery)) read_losses(iteration_);
  if (shown) display();
  next_rate(shown);
  if (histograms) send_histograms();
  if (called) call_before_update();
  if (debug) debug_->before_update();
  if (halts) gpu_->update();
  if (debug) debug_->after_update();
  const float limit = file_.solver.clip_gradients();
  if (!shown || limit < 0 || !file_.solver.enable_clip_gradient_status()) return;
  const DeviceUpdateState update = gpu_->update_state();
  if (update.norm > limit)
    send_(event::GradientsClipped{iteration_, update.norm, limit, limit / update.norm});
}

void Solver::display() {
  const Progress::Span span = progress_.display(iteration_, net_->waited());
  send_(event::Display{iteration_, span.iterations_per_second, span.seconds, file_.solver.display(),
                       losses_.mean(iteration_), shown_outputs(), span.waited});
  if (!span.starves) return;
  send_(event::Warning{cat("The training waits ", std::lround(100 * span.waited),
                           " % of its time for ", net_->waiting_hint())});
  progress_.leave_out();  // finding out takes time
}

// Of several ranks those of the whole batch, where an output is one value on all of them.
std::vector<OutputValue> Solver::shown_outputs() {
  std::vector<OutputValue> outputs = values_of(*net_);
  if (!context_.world()) return outputs;
  std::vector<size_t> begins;
  std::vector<RankValue> values;
  size_t at = 0;
  for (const Net::Output& output : net_->outputs()) {
    begins.push_back(at);
    values.push_back({{}, output.parts});
    if (output.value.count() == 1) values.back().value = outputs[at].value;
    if (output.count) {
      const std::vector<double> count = to_doubles(context_, output.count);
      values.back().divisor = count[0];
      values.back().count = count[1];
    }
    at += static_cast<size_t>(output.value.count());
  }
  combine_over_ranks(*net_, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].value) outputs[begins[i]].value = static_cast<float>(*values[i].value);
  }
  return outputs;
}

// backward() has left the sum over iter_size batches, in fp16 times the loss scale.
void Solver::send_histograms() {
  float scale = 1 / static_cast<float>(file_.solver.iter_size());
  if (options_.net.precision == Precision::fp16) scale /= gpu_->update_state().loss_scale;
  for (event::Histogram& histogram : parameter_histograms(*net_, scale)) {
    histogram.iteration = iteration_;
    send_(histogram);
  }
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

void Solver::obey() {
  snapshots_->poll();
  if (agreement_) return obey_together();
  const Action request = options_.action ? options_.action() : Action::none;
  carry_out(request, snapshots_->due(iteration_));
  if (!stopped_ && snapshots_->time_is_up(iteration_)) carry_out(Action::snapshot_stop, false);
}

void Solver::carry_out(Action request, bool snapshot_is_due) {
  const bool asked = request == Action::snapshot || request == Action::snapshot_stop;
  if (asked) snapshots_->finish();  // it may be the one that is wanted
  const bool wanted = asked && agreed(context_, snapshots_->last_written() != iteration_);
  if (snapshot_is_due || wanted) snapshots_->begin_or_log(iteration_);
  if (request == Action::stop || request == Action::snapshot_stop) stopped_ = true;
}

// Ranks agree about requests between iterations only: in a test they are at different batches.
bool Solver::interrupts_test() {
  while (options_.action && !context_.world()) {
    const Action request = options_.action();
    if (request == Action::none) break;
    carry_out(request, false);
  }
  return stopped_;
}

void Solver::snapshot() { snapshots_->write(iteration_); }

void Solver::test_all() {
  stopped_ = false;  // by an earlier call
  stopped_ |= tests_->run_all(iteration_);
  snapshots_->finish();
}

void Solver::test_one(size_t net) {
  stopped_ = false;
  tests_->run_one(iteration_, net);
  snapshots_->finish();
}

bool Solver::regular_test_after(int64_t updates) const {
  return falls_due(updates, file_.solver.test_interval(), file_.solver.test_interval_epoch(),
                   epoch_length_);
}

bool Solver::test_is_due() const {
  return regular_test_after(iteration_) || (epochs_ && epochs_->ends_after(iteration_));
}

// After the test at its end.
void Solver::end_epoch() {
  if (epochs_ && epochs_->ends_after(iteration_)) send_(epochs_->end(iteration_, tests_->last()));
}

}  // namespace crema
