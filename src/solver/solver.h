// Solver: trains a net as a solver.prototxt says. Owns the training net, the test nets, the update
// rule and the counters that a snapshot stores. It reports everything as events (solver/events/events.h);
// Caffe's log lines are one reader of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "net/weights/weights.h"
#include "solver/divergence/loss_spikes.h"
#include "solver/events/events.h"
#include "solver/events/progress.h"
#include "solver/fields/epoch_fields.h"
#include "solver/ranks/gradient_exchange.h"
#include "solver/rates/loss_window.h"
#include "solver/requests.h"
#include "solver/snapshot/snapshot.h"

namespace crema {

class ArenaPool;
class DebugInfo;
class Distillation;
class DivergenceGuard;
class Epochs;
class Iteration;
class Optimizer;
class Pruning;
class Ranks;
class Rounding;
class Rates;
class Snapshots;
class Tests;

struct SolverOptions {
  // Weights to start from; each may be a comma-separated list. If not empty, replaces the solver's
  // own `weights`.
  std::vector<std::string> weights;
  WeightsMode weights_mode = WeightsMode::strict;
  // A .solverstate to resume from. Its seed is used unless the solver sets one.
  std::string snapshot;
  // More of them, to be tried in turn when weights or state turn out not to be whole.
  std::vector<std::string> older_snapshots;
  // Added to train_state, from the command line's -level and -stage.
  std::optional<int> level;
  std::vector<std::string> stages;
  // Called after every iteration and between the batches of a test; returns each request once.
  std::function<Action()> action;
  // Readers of the events besides the log. They must outlive the solver.
  std::vector<EventReader*> readers;
  // dtype, precision and passes of all nets; the rest is set by the solver.
  NetOptions net;
  // The command that resumes from a state file, for messages; none: they name only its -snapshot
  // flag.
  std::function<std::string(const std::string& state)> resume_command;
  // The caller fills the nets' Input layers (Net::set_input); otherwise Input layers are an error.
  bool fills_inputs = false;
  // What tests say of a classifier besides the net's outputs; see solver/test/class_metrics.h.
  std::vector<std::string> metrics;
  // Without `metrics`: send the confusions of classifiers of up to 100 classes. The log does not show
  // them.
  bool confusions = false;
  // Pictures of the first filters and of mistakes, after each test of the first test net.
  bool pictures = false;
  bool rgb = false;  // their three planes are red, green and blue; else blue, green and red
  // Every how many iterations to send histograms of parameters and gradients; 0: never.
  int histograms = 0;
  // Sends the loss of each iteration, hashes of the weights and what is unusual of the losses.
  bool records = false;
  bool records_all_weights = false;  // before each iteration, not only now and then
  // How gradients travel between ranks.
  ExchangeOptions exchange;
  // The ranks divide the optimizer's state among them.
  bool shard = false;
};

// Called in each iteration, by programs that take part in it. What they throw ends the training,
// which can go on afterwards: the iteration whose update is missing is done again with other data.
struct IterationCallback {
  std::function<void()> on_start;            // before the forward pass
  std::function<void()> on_gradients_ready;  // before the update, from sums over iter_size batches
};

class Solver {
 public:
  // Creates the nets, loads weights or the snapshot. Sets the context's seed. Where the context has a
  // world, its ranks train together: all make the same calls, rank 0 alone writes files. All send
  // the same events, but for those of a test's batches, pictures and confusions.
  Solver(Context& context, const SolverFile& file, SolverOptions options = {});
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Runs the whole training up to max_iter, with tests and snapshots during it and at its end. A
  // DeviceLost or Diverged says which snapshot to resume from.
  void solve();
  // Runs that many updates, with the tests, displays and snapshots that are due. Snapshots are
  // written while it goes on; when this returns, they are there.
  void step(int64_t iterations);
  // Runs all test nets: test_iter batches each, or with test_epoch once over the data of each.
  void test_all();
  // The same with one of test_nets().
  void test_one(size_t net);
  // Returns when the files are there. Error when they could not be written, Diverged when loss or
  // weights are not finite; earlier snapshots are kept.
  void snapshot();
  void restore(const std::string& path);
  // From now on. On a GPU, iterations are no longer recorded where one waits for gradients.
  void add_callback(IterationCallback callback);
  // One update from the gradients that the net has now; the iteration stays.
  void apply_update();
  // Replace what the solver's file says, for the iterations to come.
  void set_base_rate(double rate);
  void set_max_iterations(int64_t iterations);
  void set_display(int64_t iterations);

  int64_t iteration() const { return iteration_; }  // updates done
  // Mean over the last average_loss iterations, as displays show it; nan where there is none yet. Waits
  // for a GPU that computes them.
  double loss();
  // Learning rate of the next update.
  double rate() const;
  // What makes the gradient of the loss of what backward() has left in diffs: the sum over iter_size
  // batches, in fp16 times the loss scale.
  float gradient_scale() const;
  // What epochs give is counted in iterations here.
  const SolverParameter& parameter() const { return file_.solver; }
  // An epoch of the training data; its records are 0 if neither epoch_log nor a field needs them.
  const EpochLength& epoch_length() const { return epoch_length_; }
  Net& net() { return *net_; }
  const std::vector<std::unique_ptr<Net>>& test_nets() const;
  uint64_t seed() const { return seed_; }
  // Number of forward passes of the training net, and of one of test_nets(). Code that runs a net
  // between iterations must increase it.
  uint64_t& passes() { return train_passes_; }
  uint64_t& test_passes(size_t net);
  // Memory of all nets and the optimizer; the nets share one arena for blobs.
  MemoryKinds memory();
  // True once a request to stop has been obeyed.
  bool stopped() const;

 private:
  void count_epochs();
  NetOptions net_options(Phase phase, const NetFile& net, const NetState& state);
  void set_rounding();
  void prune();
  void make_train_net();
  void make_test_nets();
  void make_parts();
  void count_passes(const SolverState& state);
  void log_memory();
  void load_start_weights(Net& net);

  void restore(const SolverState& state, const std::string& path);
  void restore_first_whole(SolverState state, std::string path);

  void run(const std::function<void()>& work);
  void train(int64_t iterations);
  void begin_run();
  void train_to_end();
  bool uninterrupted(int64_t iterations, int64_t end) const;
  void train_several(int64_t count);
  void train_iteration();
  void update(double rate, bool shown, bool debug);
  bool read_losses(int64_t last);
  bool records_weights_at(int64_t iteration) const;
  void keep_start();
  void roll_back();
  void send_histograms();
  double next_rate(bool display);
  void store(SolverState* state);
  void report_changes(const SolverState& state, const std::string& path);
  void display();
  bool test_is_due_after(int64_t updates) const;
  void run_tests();
  void end_epoch();

  Context& context_;
  SolverFile file_;
  SolverOptions options_;
  EventSender send_;
  std::vector<IterationCallback> callbacks_;
  uint64_t seed_ = 0;
  RunIdentity identity_;
  std::shared_ptr<ArenaPool> arena_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<DebugInfo> debug_;
  std::unique_ptr<Distillation> distillation_;  // null without `teacher`
  std::unique_ptr<Rounding> rounding_;          // null without `quantize`
  std::unique_ptr<Rates> rates_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Pruning> pruning_;  // null without `prune`
  std::unique_ptr<Ranks> ranks_;
  EpochLength epoch_length_;
  std::unique_ptr<Epochs> epochs_;  // null without epoch_log
  std::unique_ptr<Tests> tests_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<DivergenceGuard> guard_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Iteration> iterations_;

  // What a snapshot stores.
  int64_t iteration_ = 0;
  uint64_t train_passes_ = 0;
  int64_t samples_before_ = 0;  // see SolverState
  LossWindow losses_;

  int64_t unread_ = 0;  // the first iteration whose loss has not been checked
  LossSpikes spikes_;
  Progress progress_;
};

}  // namespace crema
