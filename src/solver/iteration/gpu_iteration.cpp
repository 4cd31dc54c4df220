#include "solver/iteration/gpu_iteration.h"

#include <algorithm>

#include "device/range.h"
#include "kernels/optim/iteration.h"
#include "proto/solver.pb.h"
#include "solver/ranks/ranks.h"

namespace crema {
namespace {

// Iterations in one graph: profitable where launching a graph takes about as long as an iteration.
constexpr int64_t kSeveral = 8;
constexpr size_t kSmallNet = size_t{256} << 20;
static_assert(DeviceUpdateState::kRates % kSeveral == 0);

}  // namespace

GpuIteration::GpuIteration(Parts parts, int64_t losses, bool capture)
    : Iteration(std::move(parts)),
      net_(parts_.net),
      optimizer_(parts_.optimizer),
      rates_(parts_.rates),
      iter_size_(parts_.iter_size),
      capture_(capture && !net_.dynamic() &&
               (!parts_.exchange || net_.context().world()->recordable())),
      limits_(optimizer_.limits()),
      state_(net_.context(), Shape{static_cast<int64_t>(sizeof(DeviceUpdateState))}, DType::u8),
      pass_(net_.context(), Shape{8}, DType::u8),
      losses_(net_.context(), Shape{losses}, DType::f32) {
  limits_.scales_loss = net_.options().precision == Precision::fp16;
  DeviceUpdateState start;
  if (limits_.scales_loss) start.loss_scale = 0x1p15f;
  copy_bytes(net_.context(), state_.raw(), Device::gpu, &start, Device::cpu, sizeof start);
  if (!rates_.follows_losses()) return;
  set_plateau();
  rates_.follow_device([this] { return plateau(); });
}

DeviceUpdateState* GpuIteration::live_state() const { return state_.data<DeviceUpdateState>(); }
uint64_t* GpuIteration::live_pass() const { return pass_.data<uint64_t>(); }

void GpuIteration::set_counters(int64_t iteration, uint64_t pass) {
  Context& context = net_.context();
  char* const state = static_cast<char*>(state_.raw());
  if (iteration != known_iteration_ || iteration >= rates_until_ ||
      rates_version_ != rates_.version()) {
    // Up to the end of the ring, so that no rate is overwritten before it is read.
    const int64_t at = iteration % DeviceUpdateState::kRates,
                  count = DeviceUpdateState::kRates - at;
    std::vector<Hyperparameters> rates;
    for (const double rate : rates_.ahead(iteration, count))
      rates.push_back(optimizer_.hyperparameters(iteration + std::ssize(rates), rate));
    copy_bytes(context, state + offsetof(DeviceUpdateState, rates) + at * sizeof(Hyperparameters),
               Device::gpu, rates.data(), Device::cpu, count * sizeof(Hyperparameters));
    rates_until_ = iteration + count;
    rates_version_ = rates_.version();
  }
  if (iteration != known_iteration_) {
    const auto updates = static_cast<uint64_t>(iteration);
    copy_bytes(context, state + offsetof(DeviceUpdateState, updates), Device::gpu, &updates,
               Device::cpu, sizeof updates);
    constexpr int32_t kGood[] = {1, 0};
    static_assert(offsetof(DeviceUpdateState, diverged) ==
                  offsetof(DeviceUpdateState, finite) + sizeof(int32_t));
    copy_bytes(context, state + offsetof(DeviceUpdateState, finite), Device::gpu, kGood,
               Device::cpu, sizeof kGood);
  }
  if (known_iteration_ < 0 || pass != known_pass_)
    copy_bytes(context, pass_.raw(), Device::gpu, &pass, Device::cpu, sizeof pass);
  known_iteration_ = iteration;
  known_pass_ = pass;
}

bool GpuIteration::divided() const {
  return divides_ && !halts_ && !optimizer_.sharded() && iter_size_ == 1 && limits_.clip < 0 &&
         !limits_.scales_loss && !plateau_;
}

// Runs the sources, and updates what depends on the net's plan.
void GpuIteration::run_sources(uint64_t pass) {
  net_.forward_sources(pass);
  if (net_.generation() != generation_) {
    generation_ = net_.generation();
    first_.clear();
    further_.clear();
    last_.clear();
    several_.clear();
    update_.clear();  // which reads tables that prepare_queued() replaces
    small_.reset();
    warm_ = false;
    divides_ = optimizer_.prepare_queued();
  }
}

// Where updates clear the diffs, it is not recorded; but other code may have run the net in
// between.
void GpuIteration::clear_diffs() {
  if (optimizer_.clears_gradients()) net_.clear_diffs();
}

void GpuIteration::forward(int) {
  const Net::SideWork seed = [this] {
    for (const Net::Loss& loss : net_.losses()) {
      if (loss.seed)  // a loss from which nothing learns has none
        seed_loss(net_.context(), loss.weight * loss.share, live_state(), loss.seed);
    }
  };
  net_.forward_rest(limits_.scales_loss ? seed : Net::SideWork(), true);
}

Net::SideWork GpuIteration::record_losses(int number) {
  return [this, number] {
    bool add = number > 0;
    for (const Net::Loss& loss : net_.losses()) {
      note_loss(net_.context(), loss.value, loss.weight / iter_size_, add, {live_state(), limits_},
                losses_);
      add = true;
    }
  };
}

Net::SideWork GpuIteration::early_update() {
  if (!divided()) return {};
  return [this] { optimizer_.queue_update({live_state(), limits_}, Update::Part::early); };
}

void GpuIteration::update_weights() {
  if (optimizer_.sharded()) optimizer_.reduce_gradients();
  const Range range("update");
  if (plateau_) observe_plateau(net_.context(), plateau_.data<Plateau>(), losses_, live_state());
  optimizer_.queue_update({live_state(), limits_, iter_size_ == 1 ? live_pass() : nullptr},
                          divided() ? Update::Part::late : Update::Part::all);
}

std::optional<Optimizer::Clipped> GpuIteration::end(int64_t, double, bool wants_clipping) {
  if (halts_) {
    update_weights();
    ++known_iteration_;
    halts_ = false;
  }
  if (!wants_clipping || limits_.clip < 0) return std::nullopt;
  const double norm = update_state().norm, limit = limits_.clip;
  if (norm <= limit) return std::nullopt;
  return Optimizer::Clipped{norm, limit, limit / norm};
}

// Runs the work directly, or records it as a CUDA graph and replays that once an iteration has run.
void GpuIteration::repeat(Capture& capture, const std::function<void()>& work) {
  if (capture_ && warm_ && !capture.recorded()) {
    try {
      capture.record(net_.context(), work);
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      capture_ = false;  // nothing of it has been executed
      net_.context().log().warning(cat(
          "this net cannot be recorded as a CUDA graph, so its kernels are launched one by one: ",
          error.what()));
    }
  }
  capture.recorded() && capture_ ? capture.launch(net_.context()) : work();
}

// A pass counter advances with the update, or, of several batches, after each.
void GpuIteration::repeat_batch(int number, bool with_update, uint64_t pass) {
  run_sources(pass);
  if (number == 0) clear_diffs();
  const bool last = parts_.exchange && is_last(number);  // which sends gradients
  repeat(number == 0 ? first_
         : last      ? last_
                     : further_,
         [&] {
           run_batch(number);
           if (iter_size_ > 1) next_pass(net_.context(), live_pass());
           if (with_update) update_weights();
         });
  ++known_pass_;
}

void GpuIteration::begin(const Request& request) {
  halts_ = request.halts;
  net_.set_live_pass(live_pass());
  if (halts_) return run_halting(request.iteration, request.pass);
  int64_t iteration = request.iteration;
  uint64_t pass = request.pass;
  const int64_t end = iteration + request.count;
  while (iteration < end) {
    const int64_t possible = at_once(iteration);
    const int64_t done = possible <= end - iteration ? possible : 1;
    done > 1 ? run_several(iteration, pass) : run_one(iteration, pass);
    iteration += done;
    pass += done * iter_size_;
  }
}

// Never captured.
void GpuIteration::run_halting(int64_t iteration, uint64_t pass) {
  set_counters(iteration, pass);
  for (int number = 0; number < iter_size_; ++number) {
    run_sources(pass + number);
    run_batch(number);
    if (iter_size_ > 1) next_pass(net_.context(), live_pass());
    if (parts_.after_backward) parts_.after_backward();
    ++known_pass_;
  }
}

int64_t GpuIteration::at_once(int64_t iteration) {
  if (!capture_ || !warm_ || iter_size_ != 1 || net_.works_on_host()) return 1;
  if (!small_) small_ = net_.memory().total() < kSmallNet;
  // All their rates must be on the device.
  const bool rates = iteration % DeviceUpdateState::kRates + kSeveral <= DeviceUpdateState::kRates;
  return *small_ && rates ? kSeveral : 1;
}

void GpuIteration::run_several(int64_t iteration, uint64_t pass) {
  set_counters(iteration, pass);
  run_sources(pass);  // no sources run on the host, but the weights may have been changed
  clear_diffs();
  repeat(several_, [&] {
    for (int64_t i = 0; i < kSeveral; ++i) {
      run_batch(0);
      update_weights();
    }
  });
  known_iteration_ += kSeveral;
  known_pass_ += kSeveral;
}

void GpuIteration::run_one(int64_t iteration, uint64_t pass) {
  set_counters(iteration, pass);
  for (int number = 0; number < iter_size_; ++number)
    repeat_batch(number, iter_size_ == 1, pass + number);
  if (iter_size_ > 1) repeat(update_, [&] { update_weights(); });
  ++known_iteration_;
  warm_ = true;
}

std::vector<double> GpuIteration::losses(int64_t first, int64_t last) {
  const RankPause pause(net_.context());  // the device may wait for other ranks
  net_.check();
  std::vector<float> values(static_cast<size_t>(last - first + 1));
  const int64_t size = losses_.count();
  for (int64_t at = first; at <= last;) {
    const int64_t count = std::min(last + 1 - at, size - at % size);
    copy_bytes(net_.context(), values.data() + (at - first), Device::cpu,
               losses_.data<float>() + at % size, Device::gpu,
               static_cast<size_t>(count) * sizeof(float));
    at += count;
  }
  return {values.begin(), values.end()};
}

DeviceUpdateState GpuIteration::update_state() {
  DeviceUpdateState state;
  copy_bytes(net_.context(), &state, Device::cpu, state_.raw(), Device::gpu, sizeof state);
  return state;
}

void GpuIteration::set_plateau() {
  if (!plateau_) {
    plateau_ = Tensor(net_.context(), Shape{static_cast<int64_t>(sizeof(Plateau))}, DType::u8);
  }
  const Plateau& plateau = rates_.plateau();
  copy_bytes(net_.context(), plateau_.raw(), Device::gpu, &plateau, Device::cpu, sizeof plateau);
}

Plateau GpuIteration::plateau() {
  Plateau plateau;
  copy_bytes(net_.context(), &plateau, Device::cpu, plateau_.raw(), Device::gpu, sizeof plateau);
  return plateau;
}

void GpuIteration::store(SolverState* state) {
  if (!limits_.scales_loss) return;
  const DeviceUpdateState update = update_state();
  state->set_loss_scale(update.loss_scale);
  state->set_loss_scale_age(update.good);
}

void GpuIteration::restore(const SolverState& state) {
  if (state.has_loss_scale()) {
    DeviceUpdateState now = update_state();
    now.loss_scale = state.loss_scale();
    now.good = state.loss_scale_age();
    copy_bytes(net_.context(), state_.raw(), Device::gpu, &now, Device::cpu, sizeof now);
  }
  known_iteration_ = -1;
  if (!rates_.follows_losses()) return;
  set_plateau();
  int64_t at = state.iter() - state.loss_window_size();
  for (const float loss : state.loss_window()) {
    copy_bytes(net_.context(), losses_.data<float>() + at++ % losses_.count(), Device::gpu, &loss,
               Device::cpu, sizeof loss);
  }
}

}  // namespace crema
