#include "solver/solver.h"

#include <unistd.h>

#include <algorithm>

#include "base/ceil_div.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "device/memory.h"
#include "device/memory_account.h"
#include "net/graph/filter.h"
#include "net/graph/unfed_inputs.h"
#include "net/plan/arena.h"
#include "net/records.h"
#include "net/whitening.h"
#include "solver/compression/compression_fields.h"
#include "solver/compression/distillation.h"
#include "solver/compression/pruning.h"
#include "solver/compression/rounding.h"
#include "solver/divergence/divergence_guard.h"
#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "solver/fields/field_ranges.h"
#include "solver/fields/freeze.h"
#include "solver/fields/solver_nets.h"
#include "solver/iteration/debug_info.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/rates/schedules.h"
#include "solver/snapshot/snapshots.h"
#include "solver/snapshot/state_file.h"
#include "solver/test/test_scores.h"
#include "solver/test/tests.h"

namespace crema {
namespace {

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

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

// What the files hold is compared; each machine may have them somewhere else.
SolverParameter without_paths(SolverParameter solver) {
  solver.clear_weights();
  solver.clear_net();
  solver.clear_train_net();
  solver.clear_test_net();
  if (solver.has_teacher()) {
    solver.mutable_teacher()->clear_net();
    solver.mutable_teacher()->clear_weights();
  }
  return solver;
}

// What the caller's options say of the solver's own fields.
void complete(SolverParameter& solver, const SolverOptions& options) {
  require(options.weights.empty() || options.snapshot.empty(),
          "a snapshot and weights are both given: a snapshot brings its own weights; give one of "
          "them");
  if (!options.weights.empty() || !options.snapshot.empty()) solver.clear_weights();
  for (const std::string& weights : options.weights) solver.add_weights(weights);
  if (options.level) solver.mutable_train_state()->set_level(*options.level);
  for (const std::string& stage : options.stages) solver.mutable_train_state()->add_stage(stage);
}

// `solver`: the fields of the file, with epochs in iterations.
void check_fields(const SolverFile& file, const SolverParameter& solver,
                  const SolverOptions& options, const Context& context) {
  for (const Finding& wrong : out_of_range(file)) fail(wrong.where, ": ", wrong.text);
  // Reports an Error of `work` at the position of the field that it names, or else of this one.
  const auto check = [&](const char* field, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      fail(place_of_message(file, error.what(), field), ": ", error.what());
    }
  };
  check("lr_policy", [&] { check_learning_rate(solver); });
  check_divergence(file);
  check_compression(file);
  check_kept_snapshots(file);
  if (options.shard) {
    check_sharding(file);
    require(
        options.histograms == 0 && !solver.debug_info(),
        "-shard: a rank knows its part of the gradients only, so neither histograms of them nor "
        "debug_info can be had; leave out one of them");
    require(options.exchange.wire == Wire::fp32, "-shard sends gradients in fp32: leave out -wire");
  }
  check("type", [&] { check_schedules(solver, update_rule(solver.type())); });
  check_momentum(file, context.log());
  check("snapshot_include_weights", [&] { check_snapshot_parts(solver); });
  check("eval_type", [&] { check_evaluation(solver); });
  const bool writes =
      solver.snapshot() > 0 || solver.snapshot_minutes() > 0 || solver.has_keep_best();
  if (writes && context.rank() == 0) check_snapshot_folder(solver);
}

// `state`: of the snapshot that the run goes on from, or null.
uint64_t seed_of(const SolverParameter& solver, const SolverState* state, const Context& context) {
  if (solver.random_seed() >= 0) return static_cast<uint64_t>(solver.random_seed());
  if (state && state->has_seed()) return state->seed();
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  uint64_t seed = mix(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid())) >> 33;
  seed = std::stoull(of_rank_0(context, cat(seed)));
  context.log().info(cat("The seed is ", seed, ", from the clock: random_seed: ", seed,
                         " in the solver repeats this run"));
  return seed;
}

}  // namespace

Solver::Solver(Context& context, const SolverFile& file, SolverOptions options)
    : context_(context),
      file_(file),
      options_(std::move(options)),
      send_(context.log(), context.rank(), options_.readers),
      arena_(std::make_shared<ArenaPool>()),
      losses_(file.solver.average_loss()) {
  const RankPause pause(context_);  // reading data and tuning take what they take
  complete(file_.solver, options_);
  log_text(context_.log(), cat("Initializing solver from parameters: \n",
                               without_last_newline(file_.solver.DebugString())));
  check_epoch_fields(file_);
  {
    // As if an epoch had a thousand iterations: whether fields are there and positive.
    SolverFile counted = file_;
    count_in_iterations({1000, 1}, &counted);
    check_fields(file_, counted.solver, options_, context_);
  }
  std::optional<SolverState> state;
  std::string state_path;
  if (!options_.snapshot.empty()) {
    state_path = find_solver_state(options_.snapshot);
    state = read_solver_state(state_path);
  }
  seed_ = context_.seed = seed_of(file_.solver, state ? &*state : nullptr, context_);
  make_train_net();
  count_epochs();
  // Allocated before the test nets.
  optimizer_ = std::make_unique<Optimizer>(file_.solver, *net_, options_.shard);
  if (file_.solver.has_prune()) pruning_ = std::make_unique<Pruning>(file_, *net_, *optimizer_);
  make_test_nets();
  ranks_ = std::make_unique<Ranks>(*net_, options_.exchange);
  make_parts();
  log_memory();
  if (file_.settings) file_.settings->require_used();
  context_.log().info("Solver scaffolding done.");
  if (state) {
    context_.log().info("Resuming from " + state_path);
    restore_first_whole(std::move(*state), std::move(state_path));
  }
  if (!ranks_->several()) return;
  const std::string same_files = "give all ranks the same files and flags";
  ranks_->join(
      *net_, iteration_,
      {{"solver", hash_of_recipe({}, without_paths(file_.solver)), same_files},
       {"metrics", join(options_.metrics, ","), "give all ranks the same -metrics"},
       {"wish for confusions", options_.confusions ? "yes" : "no", same_files},
       {"wish for pictures", options_.pictures ? "yes" : "no", same_files},
       {"precision", name_of(options_.net.precision), "give all ranks the same -precision"}});
}

Solver::~Solver() = default;

// Before anything reads max_iter and the like.
void Solver::count_epochs() {
  if (file_.solver.epoch_log() || !first_epoch_field(file_.solver).empty())
    epoch_length_ = crema::epoch_length(*net_, file_.solver.iter_size());
  const std::string said = count_in_iterations(epoch_length_, &file_);
  if (!said.empty()) context_.log().info(said);
  rates_ = std::make_unique<Rates>(file_.solver, epoch_length_);
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
  const NetFile given = open_net(file_, source);
  write_notes(context_.log(), given.upgrade.notes);
  NetOptions options = net_options(TRAIN, given, source.state);
  options.histories = kept_arenas(file_.solver);
  if (options_.shard) options.histories = ceil_div(options.histories, context_.ranks());
  options.frozen = frozen_layers(file_);
  check_trained(file_, source, given, options.state);
  NetFile net = given;
  if (file_.solver.has_teacher()) {
    distillation_ = std::make_unique<Distillation>(context_, file_);
    distillation_->add_to(&net, &options);
  }
  if (file_.solver.has_quantize()) {
    rounding_ = std::make_unique<Rounding>(file_);
    rounding_->add_to(&net, &options);
  }
  net_ = std::make_unique<Net>(context_, net.net, options);
  if (!options_.fills_inputs) refuse_unfed_inputs(net.net, options.state, options.where);
  check_frozen_layers(file_, *net_);
  if (rounding_) rounding_->check(*net_);
  identity_ = {given.path,
               file_.path,
               hash_of_text(given.net),
               hash_of_recipe(given.net, file_.solver),
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
  if (distillation_) distillation_->load_weights(*net_);
  if (!file_.solver.debug_info()) return;
  debug_ = std::make_unique<DebugInfo>(
      *net_, [this](const std::string& line) { send_(event::Debug{line}); });
}

void Solver::make_test_nets() {
  tests_ = std::make_unique<Tests>(
      Tests::Run{context_, file_, *net_, *optimizer_, *rates_, send_, options_.metrics,
                 options_.confusions, options_.pictures, options_.rgb, options_.fills_inputs,
                 [this] { return requests_->obey_in_test(iteration_); },
                 [this](const WatchedOutput& best) { snapshots_->keep_best(iteration_, best); }});
  const std::vector<NetSource> sources = test_sources(file_);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].tested()) {
      context_.log().info(cat("Test net (#", i, ") is left out: its test_iter is 0"));
      continue;
    }
    context_.log().info(
        cat("Creating test net (#", i, ") specified by ", describe_test(file_.solver, sources[i])));
    NetFile net = open_net(file_, sources[i]);
    write_notes(context_.log(), net.upgrade.notes);
    NetOptions options = net_options(TEST, net, sources[i].state);
    if (rounding_) rounding_->add_to(&net, &options);
    options.share = net_.get();
    Net& made = tests_->add(static_cast<int>(i), sources[i], net, options);
    if (options_.snapshot.empty()) load_start_weights(made);
  }
  tests_->watch();
}

void Solver::make_parts() {
  if (file_.solver.epoch_log()) {
    require(
        epoch_length_.records > 0, file_.where("epoch_log"),
        ": epoch_log needs a source that knows how many records it has, as databases, HDF5 files "
        "and lists do");
    epochs_ = std::make_unique<Epochs>(*net_, epoch_length_, file_.solver.iter_size(),
                                       file_.solver.max_iter());
  }
  snapshots_ = std::make_unique<Snapshots>(Snapshots::Run{
      context_, file_, *net_, *optimizer_, send_, epoch_length_, options_.resume_command,
      [this](int64_t iteration) { read_losses(iteration - 1); },
      [this](SolverState* state) { store(state); }, [this] { guard_->check_weights(iteration_); }});
  guard_ = std::make_unique<DivergenceGuard>(
      DivergenceGuard::Run{file_, *net_, *optimizer_, *rates_, *snapshots_, send_, debug_.get()});
  requests_ = std::make_unique<Requests>(context_, options_.action, *ranks_, *snapshots_);
  Iteration::Parts parts{*net_, *optimizer_, *rates_, file_.solver.iter_size(), ranks_->exchange()};
  if (epochs_) parts.after_forward = [this] { epochs_->add(); };
  if (debug_) {
    parts.after_backward = [this] {
      if (debug_->enabled()) debug_->norms();
    };
  }
  parts.watch_forward = [this](int64_t iteration, uint64_t pass) {
    guard_->watch_forward(iteration, pass);
  };
  iterations_ =
      make_iteration(std::move(parts), std::max<int64_t>(kMaxLosses, file_.solver.average_loss()),
                     net_->options().capture && !file_.solver.debug_info());
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

const std::vector<std::unique_ptr<Net>>& Solver::test_nets() const { return tests_->nets(); }
bool Solver::stopped() const { return requests_->stopped(); }
uint64_t& Solver::test_passes(size_t net) { return tests_->passes(net); }

MemoryKinds Solver::memory() {
  MemoryKinds all = net_->memory();
  all.history = optimizer_->kept_bytes();
  tests_->add_memory(&all);
  return all;
}

void Solver::log_memory() {
  const MemoryKinds all = memory();
  const MemoryAccount& account = *context_.memory();
  const size_t maximum = account.limited() ? account.limit() : total_memory(context_);
  const bool gpu = context_.device() == Device::gpu;
  context_.log().info(cat("Memory: ", size_text(all.total()),
                          gpu ? " of " + size_text(maximum) : "", " on the ",
                          name_of(context_.device()), ": ", describe(all)));
  if (!optimizer_->sharded()) return;
  const size_t whole = optimizer_->whole_bytes(), kept = optimizer_->kept_bytes();
  context_.log().info(cat("-shard: of ", size_text(whole), " of the optimizer's state each rank ",
                          "keeps a part; this saves ", size_text(whole - kept), " here"));
}

void Solver::add_callback(IterationCallback callback) { callbacks_.push_back(std::move(callback)); }

void Solver::apply_update() {
  require(options_.net.precision != Precision::fp16,
          "apply_update(): with precision fp16 gradients are scaled, which only whole iterations "
          "know of; use bf16");
  if (optimizer_->sharded()) optimizer_->reduce_gradients();
  optimizer_->update(rate(), iteration_);
  net_->parameters_changed();
  context_.synchronize();
}

void Solver::set_base_rate(double rate) {
  require(rate >= 0, "base_lr: ", rate, ": expected a number that is not negative");
  file_.solver.set_base_lr(static_cast<float>(rate));
  rates_->changed();
}

void Solver::set_max_iterations(int64_t iterations) {
  require(iterations >= 0 && iterations <= INT32_MAX, "max_iter: ", iterations,
          ": expected a number of iterations");
  file_.solver.set_max_iter(static_cast<int32_t>(iterations));
  rates_->changed();  // some policies end there
}

void Solver::set_display(int64_t iterations) {
  require(iterations >= 0 && iterations <= INT32_MAX, "display: ", iterations,
          ": expected a number of iterations, or 0 for never");
  file_.solver.set_display(static_cast<int32_t>(iterations));
}

}  // namespace crema
