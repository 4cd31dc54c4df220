// Context: the device that work runs on, and all state that work needs. It is passed to every call,
// never global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "device/device.h"

namespace crema {

class Communicator;     // device/communicator.h
class MemoryAccount;    // device/memory_account.h
struct Gpu;             // stream and library handles; device/gpu.h, only in CUDA builds
struct Implementation;  // kernels/core/kernel_registry.h

class Context {
 public:
  // On the GPU: opens device `ordinal`; Error when there is none or the build has no CUDA.
  explicit Context(Device device, int ordinal = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  int ordinal() const { return ordinal_; }
  Gpu& gpu() const { return *gpu_; }
  // Bytes allocated by Buffers of this context, and their limit; the Buffers keep it alive.
  const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }

  // Sets the tuning mode for plans made from now on; a no-op on a CPU.
  void tune(TuneMode mode);
  // Frees the memory in which candidates were timed.
  void end_tuning();

  // On a GPU with `overlap` set, `work` is queued on a side stream and runs concurrently with later
  // work and with other streams, until join(): it must touch neither memory that they write nor
  // their workspaces. Otherwise, and for side stream kHere, `work` is just called. `meanwhile` is
  // queued on the main stream, and first, so that the GPU starts with it.
  static constexpr int kSideStreams = 2, kHere = -1;
  bool overlap = false;
  void on_side_stream(int side_stream, const std::function<void()>& work,
                      const std::function<void()>& meanwhile = {});
  // Likewise on the communication stream, which first waits for all work queued so far, on any
  // stream. `work` must not need a workspace. On a CPU it is just called.
  void on_communication_stream(const std::function<void()>& work);
  // Waits for all of these streams.
  void join();

  // Waits until all queued work is done and throws an Error for any failure on the device.
  void synchronize() const;

  Log& log() const { return *log_; }
  void set_log(Log& log) { log_ = &log; }

  // The ranks that train together; null: this one trains alone. It must outlive the context's use.
  Communicator* world() const { return world_; }
  void set_world(Communicator* world) { world_ = world; }
  int rank() const;
  int ranks() const;

  // All random numbers are a function of the seed, of an id of their consumer, and of the pass
  // number.
  uint64_t seed = 1;
  Random random(uint64_t who, uint64_t pass = 0) const { return {seed, mix(who, pass)}; }
  PassRandom random(uint64_t who, uint64_t pass, const uint64_t* live_pass) const {
    return {random(who, pass), who, live_pass};
  }

  // Forces one entry of every kernel's list of implementations (tests, -implementation); "" lets
  // each list choose.
  std::string implementation;
  // The implementations of the kernels made last, such as "cudnn" or "forward eng0_k24=11": kernels
  // append to it, and a plan takes the list (-dump_plan).
  std::vector<std::string> chosen;
  // The implementations without state that have run, if the log is verbose: each is logged once.
  // Kernels that a parallel loop calls add to it in several threads, under the mutex.
  std::vector<const Implementation*> ran;
  std::mutex ran_mutex;
  // Kernels made from now on give the same bits on every run; if false, GPU kernels may sum in any
  // order.
  bool repeatable = true;
  // Databases that fit may be kept in GPU memory.
  bool resident = true;

 private:
  Device device_;
  int ordinal_;
  Log* log_ = &silent_log();
  Communicator* world_ = nullptr;
  std::shared_ptr<MemoryAccount> memory_;
  std::unique_ptr<Gpu> gpu_;
};

// While one lives, kernels are chosen without timing candidates.
class TuningOff {
 public:
  explicit TuningOff(Context& context);
  ~TuningOff();
  TuningOff(const TuningOff&) = delete;
  TuningOff& operator=(const TuningOff&) = delete;

 private:
  Context& context_;
  TuneMode before_ = TuneMode::off;
};

}  // namespace crema
