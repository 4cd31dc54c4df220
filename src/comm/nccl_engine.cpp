#include "comm/nccl_engine.h"

#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/background_thread.h"
#include "comm/copy_engines.h"
#include "device/gpu.h"
#include "device/gpu_libraries.h"

#define CREMA_NCCL(F)      \
  F(ncclAllGather)         \
  F(ncclAllReduce)         \
  F(ncclCommAbort)         \
  F(ncclCommDestroy)       \
  F(ncclCommFinalize)      \
  F(ncclCommGetAsyncError) \
  F(ncclCommInitRank)      \
  F(ncclGetErrorString)    \
  F(ncclGetLastError)      \
  F(ncclGetUniqueId)       \
  F(ncclGetVersion)        \
  F(ncclReduceScatter)
CREMA_NCCL(CREMA_JUMP)

namespace crema {
namespace {

constexpr GpuFunction kNccl[] = {CREMA_NCCL(CREMA_FUNCTION)};

void load_nccl() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      load_gpu_library("libnccl.so", NCCL_MAJOR, kNccl, "training on several GPUs");
    } catch (const Error& error) {
      fail(error.what(), " (NCCL comes apart from CUDA: `bash data_scripts/setup.sh --nccl`)");
    }
  });
}

using Clock = std::chrono::steady_clock;

std::chrono::duration<double> duration_of(double time) {
  return std::chrono::duration<double>(std::min(time, 1e8));
}

// Short at first: most calls that do not finish immediately finish soon.
void wait_a_moment(int& moments) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::min(20 << std::min(moments++, 8), 5000)));
}

// The meaning of `status` for this rank.
std::string words_of(ncclResult_t status, ncclComm_t comm) {
  const char* const last = ncclGetLastError(comm);
  return cat("NCCL says \"", ncclGetErrorString(status), "\"",
             last && *last ? cat(" (", last, ")") : "",
             "; with NCCL_DEBUG=WARN it says more on stderr");
}

void check_nccl(ncclResult_t status, const char* what, ncclComm_t comm) {
  if (status == ncclSuccess) return;
  if (status == ncclUnhandledCudaError) check_cuda(cudaGetLastError(), what);
  const std::string message = cat(what, " failed: ", words_of(status, comm));
  // A broken connection to another rank nearly always means that the rank has ended.
  if (status == ncclRemoteError || status == ncclSystemError) throw RankLost(message, false);
  fail(message);
}

ncclDataType_t type_of(Element element) {
  switch (element) {
    case Element::f32:
      return ncclFloat32;
    case Element::f64:
      return ncclFloat64;
    case Element::f16:
      return ncclFloat16;
    case Element::bf16:
      return ncclBfloat16;
  }
  return ncclFloat32;
}

constexpr const char* kConnecting = "connecting the ranks' GPUs";

// One communicator of NCCL, and its own thread that connects it, watches it (connection errors
// occur while kernels wait on the GPU) and ends it. Each of these can take for ever if a rank is
// lost: the thread is then left alone and ends with the process. An abort takes until the CUDA
// graphs that have recorded the communicator are destroyed; each communicator has its own thread
// for it, since to free one NCCL waits for the kernels of the other. All other calls are the net's
// thread's.
//
// The communicators are blocking. With non-blocking ones NCCL makes each call in a new thread, even
// while a CUDA graph records it.
class Channel {
 public:
  // Begins to connect; connected() says when that is done. `id` is the same on all ranks.
  Channel(int gpu, const ncclUniqueId& id, int rank, int ranks, double timeout)
      : state_(std::make_shared<State>()) {
    state_->timeout = timeout;
    background_thread([state = state_, gpu, id, rank, ranks] {
      if (connect(*state, gpu, id, rank, ranks)) watch(*state);
      const std::lock_guard<std::mutex> lock(state->mutex);
      state->ended = true;
      state->changed.notify_all();
    }).detach();
  }

  // After end().
  ~Channel() {
    end();
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (!state_->connected) return;
    const double time = state_->aborted ? 5 : state_->timeout;
    state_->changed.wait_for(lock, duration_of(time), [&] { return state_->ended; });
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Whether it is done, after at most `time`. Error if NCCL fails.
  bool connected(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (!state_->changed.wait_for(lock, time, [&] { return state_->connected || state_->ended; }))
      return false;
    require(state_->connected, state_->failure);
    return true;
  }

  // Queues work. `check` throws once a rank is lost.
  template <typename Call>
  void call(const char* what, const std::function<void()>& check, const Call& work) {
    auto lock = calls();
    ncclResult_t status = work(state_->comm);
    // Only if NCCL_COMM_BLOCKING=0 requests it.
    for (int moments = 0; status == ncclInProgress; status = state_of(*state_)) {
      lock.unlock();
      check();
      wait_a_moment(moments);
      lock = calls();
    }
    check_nccl(status, what, state_->comm);
  }

  void check() {
    if (!state_->aborted) return;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    throw RankLost(state_->failure, false);
  }

  void abort(const std::string& why = "a rank is lost, so the GPUs are disconnected") {
    state_->abort(why);
  }

  // Begins to end it, together with the other ranks, or alone while an exception is in flight.
  void end() {
    if (std::uncaught_exceptions() > exceptions_) return abort();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    ncclComm_t comm = nullptr;
    double timeout = 0;
    std::mutex calls;  // guards NCCL calls, one at a time; only the abort once `aborted` is set
    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    std::atomic<bool> aborted = false;
    bool connected = false, ending = false, ended = false;
    std::string failure;  // why it is aborted, or not connected

    void abort(const std::string& why) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure.empty()) failure = why;
      aborted = true;
      changed.notify_all();
    }
  };

  // A call that waits until the GPU accepts work may hold this until the abort has ended that work.
  std::unique_lock<std::mutex> calls() {
    std::unique_lock<std::mutex> lock(state_->calls, std::try_to_lock);
    for (int moments = 0; !lock && !lock.try_lock();) {
      check();
      wait_a_moment(moments);
    }
    check();
    return lock;
  }

  // The result of NCCL's last call.
  static ncclResult_t state_of(const State& state) {
    ncclResult_t status = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(state.comm, &status);
    return asked == ncclSuccess ? status : asked;
  }

  static bool connect(State& state, int gpu, const ncclUniqueId& id, int rank, int ranks) {
    ncclResult_t status = ncclUnhandledCudaError;
    if (cudaSetDevice(gpu) == cudaSuccess) status = ncclCommInitRank(&state.comm, ranks, id, rank);
    for (int moments = 0; status == ncclInProgress; status = state_of(state))
      wait_a_moment(moments);
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.connected = status == ncclSuccess;
    if (!state.connected) state.failure = cat(kConnecting, " failed: ", words_of(status, nullptr));
    state.changed.notify_all();
    return state.connected;
  }

  static void watch(State& state) {
    std::unique_lock<std::mutex> lock(state.mutex);
    while (!state.aborted && !state.ending) {
      state.changed.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
      look(state);
      lock.lock();
    }
    lock.unlock();
    if (!state.aborted && finalize(state)) return;
    // A call that is under way should end first, but not one that waits for this abort.
    const auto until = Clock::now() + std::chrono::seconds(2);
    std::unique_lock<std::mutex> call(state.calls, std::try_to_lock);
    for (int moments = 0; !call && Clock::now() < until && !call.try_lock();)
      wait_a_moment(moments);
    if (call) call.unlock();
    ncclCommAbort(state.comm);
  }

  static void look(State& state) {
    const std::unique_lock<std::mutex> lock(state.calls, std::try_to_lock);
    if (!lock || state.aborted) return;
    const ncclResult_t status = state_of(state);
    if (status == ncclSuccess || status == ncclInProgress) return;
    state.abort(cat("summing over GPUs failed: ", words_of(status, state.comm)));
  }

  static bool finalize(const State& state) {
    ncclResult_t status = ncclCommFinalize(state.comm);
    for (int moments = 0; status == ncclInProgress && !state.aborted; status = state_of(state))
      wait_a_moment(moments);
    if (status != ncclSuccess) return false;
    ncclCommDestroy(state.comm);
    return true;
  }

  std::shared_ptr<State> state_;
  int exceptions_ = std::uncaught_exceptions();
};

class NcclEngine final : public Engine {
 public:
  NcclEngine(Context& context, const NcclOptions& options)
      : rank_(options.rank),
        check_(options.check),
        copies_(context, options.rank, options.ranks, options.gather) {
    // One per communicator: the main stream's, and the communication stream's.
    std::array<ncclUniqueId, 2> ids{};
    std::string text;
    if (rank_ == 0) {
      for (ncclUniqueId& id : ids) check_nccl(ncclGetUniqueId(&id), kConnecting, nullptr);
      text.assign(reinterpret_cast<const char*>(ids.data()), sizeof ids);
    }
    text = options.gather(text)[0];
    require(text.size() == sizeof ids, "rank 0 has sent ", text.size(),
            " bytes for NCCL's ids, but ", sizeof ids,
            " were expected: the ranks run different builds");
    std::memcpy(ids.data(), text.data(), sizeof ids);
    context.synchronize();
    for (size_t i = 0; i < ids.size(); ++i) {
      channels_[i] = std::make_unique<Channel>(context.ordinal(), ids[i], rank_, options.ranks,
                                               options.timeout);
      const auto until = Clock::now() + duration_of(options.timeout);
      while (!channels_[i]->connected(std::chrono::milliseconds(100))) {
        check_();
        if (Clock::now() < until) continue;
        throw RankLost(cat(kConnecting, " has taken ", options.timeout, " s and is not done: ",
                           "NCCL_DEBUG=INFO says on stderr what NCCL waits for; -rank_timeout ",
                           "gives it longer"),
                       false);
      }
    }
  }

  ~NcclEngine() override {
    for (const auto& channel : channels_) channel->end();
  }

  bool expose(Context&, void* memory, size_t bytes, size_t most) override {
    return copies_.expose(memory, bytes, most);
  }

  void sum(Context& context, void* values, int64_t count, Element element) override {
    const bool beside = context.gpu().communicating();
    if (beside && copies_.take(values, count, element)) {
      copies_.sum(values, count, element);
      copying_ = true;
      return;
    }
    call(context, "summing over GPUs", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(values, values, static_cast<size_t>(count), type_of(element), ncclSum,
                           comm, stream);
    });
    if (beside) copying_ = false;  // once it has finished, all ranks have reached it
  }
  void begin_sum(Context& context, void* values, int64_t count, Element element) override {
    context.on_communication_stream([&] { sum(context, values, count, element); });
  }
  void wait(Context& context) override {
    if (copying_) context.on_communication_stream([&] { copies_.finish(); });
    copying_ = false;
    context.join();
  }
  void sum_part(Context& context, void* values, int64_t part, Element element) override {
    call(context, "summing over GPUs", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduceScatter(values, part_of_rank(values, part, element),
                               static_cast<size_t>(part), type_of(element), ncclSum, comm, stream);
    });
  }
  void share_parts(Context& context, void* values, int64_t part, Element element) override {
    call(context, "sharing values among GPUs", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllGather(part_of_rank(values, part, element), values, static_cast<size_t>(part),
                           type_of(element), comm, stream);
    });
  }
  bool recordable() const override { return true; }
  std::string name() const override {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "asking for NCCL's version", nullptr);
    return cat("NCCL ", version / 10000, ".", version / 100 % 100, ".", version % 100);
  }
  void check() override {
    for (const auto& channel : channels_) channel->check();
  }
  void abort() override {
    copies_.abort();
    for (const auto& channel : channels_) channel->abort();
  }

 private:
  template <typename Call>
  void call(Context& context, const char* what, const Call& work) {
    check();  // both: the other one may have failed
    channels_[context.gpu().communicating() ? 1 : 0]->call(
        what, check_, [&](ncclComm_t comm) { return work(comm, context.gpu().stream); });
  }

  void* part_of_rank(void* values, int64_t part, Element element) const {
    return static_cast<char*>(values) + rank_ * part * bytes_of(element);
  }

  int rank_;
  std::function<void()> check_;
  CopyEngines copies_;
  bool copying_ = false;  // other ranks may still read from this one
  // Work of two communicators may run at the same time; that of one runs in its order.
  std::array<std::unique_ptr<Channel>, 2> channels_;
};

}  // namespace

std::unique_ptr<Engine> make_nccl_engine(Context& context, const NcclOptions& options) {
  load_nccl();
  return std::make_unique<NcclEngine>(context, options);
}

bool has_nccl() { return true; }

}  // namespace crema
