#include "solver/solver.h"

#include <unistd.h>

#include <algorithm>

#include "base/ceil_div.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log_text.h"
#include "device/memory_account.h"
#include "net/arena.h"
#include "net/filter.h"
#include "net/records.h"
#include "net/unfed_inputs.h"
#include "net/whitening.h"
#include "solver/divergence/divergence.h"
#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "solver/fields/field_ranges.h"
#include "solver/fields/freeze.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/fields/solver_nets.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/rates/schedules.h"
#include "solver/snapshot/snapshot_writer.h"
#include "solver/snapshot/state_file.h"
#include "solver/test/class_metrics.h"
#include "solver/test/pictures.h"
#include "solver/test/test_scores.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

constexpr size_t kMostMistakes = 25;  // that are shown of a test
constexpr int64_t kMaxLosses = 1024;  // losses that stay on the device until they are read

// The files of all comma-separated lists.
std::vector<std::string> weight_files(const SolverParameter& solver) {
  std::vector<std::string> files;
  for (const std::string& list : solver.weights()) {
    for (const std::string& file : split(list, ',')) {
      if (!trim(file).empty()) files.emplace_back(trim(file));
    }
  }
  return files;
}

bool has_loss(const Net& net) {
  const std::vector<Value>& values = net.graph().values;
  return std::any_of(values.begin(), values.end(),
                     [](const Value& value) { return value.loss_weight != 0; });
}

// True when none of the net's parameters has memory of its own.
bool borrows_everything(const Net& net, const Net& owner) {
  for (const Parameter& parameter : net.graph().parameters) {
    if (parameter.data.memory() != owner.parameter_arena().memory()) return false;
  }
  return true;
}

}  // namespace

Solver::Solver(Context& context, const SolverFile& file, SolverOptions options)
    : context_(context),
      file_(file),
      options_(std::move(options)),
      send_(context.log(), context.rank(), options_.readers),
      arena_(std::make_shared<ArenaPool>()),
      writer_(std::make_unique<SnapshotWriter>(context.rank() == 0)),
      losses_(file.solver.average_loss()) {
  const RankPause pause(context_);  // reading data and tuning take what they take
  complete_parameter();
  log_text(context_.log(), cat("Initializing solver from parameters: \n",
                               without_last_newline(file_.solver.DebugString())));
  check_epoch_fields(file_);
  {
    // As if an epoch had a thousand iterations: whether fields are there and positive.
    SolverFile counted = file_;
    count_in_iterations({1000, 1}, &counted);
    check_parameter(counted.solver);
  }
  std::optional<SolverState> state;
  std::string state_path;
  if (!options_.snapshot.empty()) {
    state_path = find_solver_state(options_.snapshot);
    state = read_solver_state(state_path);
  }
  choose_seed(state ? &*state : nullptr);
  make_train_net();
  count_epochs();
  // Allocated before the test nets.
  optimizer_ = std::make_unique<Optimizer>(file_.solver, *net_, options_.shard);
  make_test_nets();
  make_watches();
  if (Communicator* const world = context_.world()) {
    exchange_ = std::make_unique<GradientExchange>(*net_, *world, options_.exchange);
    agreement_ = std::make_unique<Agreement>(*world);
  }
  make_gpu_iteration();
  log_memory();
  if (file_.settings) file_.settings->require_used();
  context_.log().info("Solver scaffolding done.");
  if (state) {
    context_.log().info("Resuming from " + state_path);
    restore_first_whole(std::move(*state), std::move(state_path));
  }
  join_ranks();
}

Solver::~Solver() = default;

void Solver::complete_parameter() {
  SolverParameter& solver = file_.solver;
  require(options_.weights.empty() || options_.snapshot.empty(),
          "a snapshot and weights are both given: a snapshot brings its own weights; give one of "
          "them");
  if (!options_.weights.empty() || !options_.snapshot.empty()) solver.clear_weights();
  for (const std::string& weights : options_.weights) solver.add_weights(weights);
  if (options_.level) solver.mutable_train_state()->set_level(*options_.level);
  for (const std::string& stage : options_.stages) solver.mutable_train_state()->add_stage(stage);
}

void Solver::check_parameter(const SolverParameter& solver) {
  for (const Finding& wrong : out_of_range(file_)) fail(wrong.where, ": ", wrong.text);
  // Reports an Error of `work` at the position of the field that it names, or else of this one.
  const auto check = [&](const char* field, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      fail(place_of_message(file_, error.what(), field), ": ", error.what());
    }
  };
  check("lr_policy", [&] { check_learning_rate(solver); });
  check_divergence(file_);
  check_kept_snapshots(file_);
  if (options_.shard) {
    check_sharding(file_);
    require(
        options_.histograms == 0 && !solver.debug_info(),
        "-shard: a rank knows its part of the gradients only, so neither histograms of them nor "
        "debug_info can be had; leave out one of them");
    require(options_.exchange.wire == Wire::fp32,
            "-shard sends gradients in fp32: leave out -wire");
  }
  check("type", [&] { check_schedules(solver, update_rule(solver.type())); });
  check_momentum(file_, context_.log());
  check("snapshot_include_weights", [&] { check_snapshot_parts(solver); });
  check("eval_type", [&] { check_evaluation(solver); });
  const bool writes =
      solver.snapshot() > 0 || solver.snapshot_minutes() > 0 || solver.has_keep_best();
  if (writes && context_.rank() == 0) check_snapshot_folder(solver);
}

// Before anything reads max_iter and the like.
void Solver::count_epochs() {
  if (file_.solver.epoch_log() || !first_epoch_field(file_.solver).empty())
    epoch_length_ = crema::epoch_length(*net_, file_.solver.iter_size());
  const std::string said = count_in_iterations(epoch_length_, &file_);
  if (!said.empty()) context_.log().info(said);
  rates_ = std::make_unique<Rates>(file_.solver, epoch_length_);
}

void Solver::choose_seed(const SolverState* state) {
  if (file_.solver.random_seed() >= 0) {
    seed_ = static_cast<uint64_t>(file_.solver.random_seed());
  } else if (state && state->has_seed()) {
    seed_ = state->seed();
  } else {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    seed_ = mix(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid())) >> 33;
    seed_ = std::stoull(of_rank_0(context_, cat(seed_)));
    context_.log().info(cat("The seed is ", seed_, ", from the clock: random_seed: ", seed_,
                            " in the solver repeats this run"));
  }
  context_.seed = seed_;
}

NetOptions Solver::net_options(Phase phase, const NetFile& net, const NetState& state) {
  NetOptions options = options_.net;
  options.state = net_state(phase, net.net, state);
  options.keep_blobs = options.keep_blobs || file_.solver.debug_info();
  options.arena = arena_;
  options.folder = folder_of(net.path);
  const auto kept = std::make_shared<NetFile>(net);
  options.where = [kept](int layer) { return kept->where(layer); };
  return options;
}

void Solver::make_train_net() {
  const NetSource source = train_source(file_);
  context_.log().info(describe_train(file_.solver, source));
  const NetFile net = open_net(file_, source);
  write_notes(context_.log(), net.upgrade.notes);
  NetOptions options = net_options(TRAIN, net, source.state);
  options.histories = kept_arenas(file_.solver);
  if (options_.shard) options.histories = ceil_div(options.histories, context_.ranks());
  options.frozen = frozen_layers(file_);
  check_trained(file_, source, net, options.state);
  net_ = std::make_unique<Net>(context_, net.net, options);
  if (!options_.fills_inputs) refuse_unfed_inputs(net.net, options.state, options.where);
  check_frozen_layers(file_, *net_);
  identity_ = {net.path,
               file_.path,
               hash_of_text(net.net),
               hash_of_recipe(net.net, file_.solver),
               fingerprint_of(net_->graph()),
               "",
               "",
               {}};
  if (!has_loss(*net_)) {
    context_.log().warning(cat(net.path,
                               ": no layer of the training net is a loss, or has a "
                               "loss_weight: nothing will be learned"));
  }
  if (file_.solver.snapshot_format() == SolverParameter::HDF5) check_hdf5_names(*net_);
  if (options_.snapshot.empty()) {
    fill_from_data(*net_, net.net);
    load_start_weights(*net_);
  }
  if (!file_.solver.debug_info()) return;
  debug_ = std::make_unique<DebugInfo>(
      *net_, [this](const std::string& line) { send_(event::Debug{line}); });
}

void Solver::make_test_nets() {
  const std::vector<NetSource> sources = test_sources(file_);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].tested()) {
      context_.log().info(cat("Test net (#", i, ") is left out: its test_iter is 0"));
      continue;
    }
    context_.log().info(
        cat("Creating test net (#", i, ") specified by ", describe_test(file_.solver, sources[i])));
    const NetFile net = open_net(file_, sources[i]);
    write_notes(context_.log(), net.upgrade.notes);
    NetOptions options = net_options(TEST, net, sources[i].state);
    options.share = net_.get();
    options.whole_epochs = sources[i].whole_epoch;
    const bool pictures = options_.pictures && test_nets_.empty();
    const bool confusions = options_.confusions && options_.metrics.empty();
    if (pictures || confusions) {
      options.kept = [=](const Graph& graph) {
        std::vector<int> values = pictures ? Mistakes::values(graph) : std::vector<int>();
        const std::vector<int> more =
            confusions ? ClassMetrics::unasked_values(graph) : std::vector<int>();
        values.insert(values.end(), more.begin(), more.end());
        return values;
      };
    }
    options.keep_blobs = options.keep_blobs || !options_.metrics.empty();
    test_nets_.push_back(std::make_unique<Net>(context_, net.net, options));
    if (!options_.fills_inputs) refuse_unfed_inputs(net.net, options.state, options.where);
    test_numbers_.push_back(static_cast<int>(i));
    test_iterations_.push_back(sources[i].test_iter);
    if (sources[i].whole_epoch) {
      try {
        test_iterations_.back() = static_cast<int>(check_whole_epochs(*test_nets_.back()).batches);
      } catch (const DeviceLost&) {
        throw;
      } catch (const Error& error) {
        fail(file_.where("test_epoch"), ": test_epoch, test net (#", i, "): ", error.what());
      }
    }
    test_passes_.push_back(0);
    if (pictures && !Mistakes::values(test_nets_[0]->graph()).empty())
      mistakes_ = std::make_unique<Mistakes>(*test_nets_[0], kMostMistakes, options_.rgb);
    Net& made = *test_nets_.back();
    test_metrics_.emplace_back();
    if (!options_.metrics.empty())
      test_metrics_.back() = std::make_unique<ClassMetrics>(made, options_.metrics);
    if (confusions && !ClassMetrics::unasked_values(made.graph()).empty())
      test_metrics_.back() = std::make_unique<ClassMetrics>(made);
    if (options_.snapshot.empty()) load_start_weights(*test_nets_.back());
    if (!file_.solver.debug_info()) continue;
    test_debug_.push_back(std::make_unique<DebugInfo>(
        *test_nets_.back(), [this](const std::string& line) { send_(event::Debug{line}); }));
    test_debug_.back()->enable(true);
  }
}

void Solver::make_gpu_iteration() {
  if (file_.solver.epoch_log()) {
    require(
        epoch_length_.records > 0, file_.where("epoch_log"),
        ": epoch_log needs a source that knows how many records it has, as databases, HDF5 files "
        "and lists do");
    epochs_ = std::make_unique<Epochs>(*net_, epoch_length_, file_.solver.iter_size(),
                                       file_.solver.max_iter());
  }
  if (context_.device() == Device::cpu) return;
  const int64_t losses = std::max<int64_t>(kMaxLosses, file_.solver.average_loss());
  gpu_ = std::make_unique<GpuIteration>(*net_, *optimizer_, file_.solver.iter_size(), losses,
                                        options_.capture && !file_.solver.debug_info(), *rates_);
  if (epochs_) gpu_->set_after_forward([this] { epochs_->add(); });
  if (exchange_) gpu_->set_exchange(*exchange_, context_.world()->recordable());
}

void Solver::load_start_weights(Net& net) {
  const bool training = &net == net_.get();
  for (const std::string& file : weight_files(file_.solver)) {
    context_.log().info("Finetuning from " + file);
    if (!training && borrows_everything(net, *net_)) continue;
    load_weights(net, find_file(file, folder_of(file_.path)), {options_.weights_mode, training});
    net.parameters_changed();
  }
}

void Solver::restore(const std::string& path) {
  const std::string state_path = find_solver_state(path);
  restore(read_solver_state(state_path), state_path);
}

void Solver::restore(const SolverState& state, const std::string& path) {
  finish_snapshot();
  require(state.iter() >= 0, path, ": iter is ", state.iter(), ": the file is damaged");
  // The start of this run keeps its weights elsewhere.
  const bool of_start = start_ && &state == &start_->state;
  std::string weights;
  if (!of_start && !net_->parameters().empty()) weights = find_snapshot_weights(state, path);
  check_same_history(state.recipe(), file_.solver, path);
  const std::vector<std::string> lacking = optimizer_->restore(state, path);
  require(!state.has_net_fingerprint() || state.net_fingerprint() == fingerprint_of(net_->graph()),
          path, ": is a snapshot of another net: the names of the layers with parameters differ");
  if (!weights.empty()) {
    const LoadReport report = load_weights(*net_, weights, {WeightsMode::strict, false});
    for (const LoadedLayer& layer : report.layers) {
      require(layer.outcome != LoadedLayer::Outcome::missing, path, ": its weights, ", weights,
              ", have no layer \"", layer.name,
              "\", which would go on from random values: they are of another net");
    }
  }
  require(!state.has_weights_checksum() || state.weights_checksum() == weights_checksum(*net_),
          path, ": ", weights,
          " does not hold the weights of this snapshot: another run has overwritten it. To start "
          "anew from those weights use "
          "-weights");
  net_->parameters_changed();
  for (const std::string& field : lacking) {
    optimizer_->restart(field);
    const char* what = field == "ema_decay" ? "average of the weights" : "slow weights";
    context_.log().warning(cat(path, ": holds no ", what, " (", field, "): it starts anew"));
  }
  if (gpu_ && state.has_loss_scale())
    gpu_->restore_loss_scale(state.loss_scale(), state.loss_scale_age());
  iteration_ = unread_ = last_state_iteration_ = state.iter();
  last_state_ = identity_.resumed_from = path;
  if (state.has_seed() && file_.solver.random_seed() < 0) context_.seed = seed_ = state.seed();
  // A state of Caffe has no data position: as in Caffe, the data start over.
  count_passes(state);
  for (int i = 0; i < static_cast<int>(test_passes_.size()); ++i) {
    test_passes_[i] = i < state.test_passes_size() ? state.test_passes(i) : 0;
  }
  losses_.restore(iteration_, {state.loss_window().begin(), state.loss_window().end()});
  rates_->restore(state, iteration_);
  for (auto* watched : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (watched) watched->restore(state, last_state_);
  }
  if (gpu_) gpu_->restart(iteration_, {state.loss_window().begin(), state.loss_window().end()});
  if (!of_start) report_changes(state, path);
  if (context_.rank() == 0) restore_kept_snapshots(state, path);
  restore_carried(state);
  send_(event::Restored{file_.solver.type(), iteration_});
}

}  // namespace crema
