// Context: the device that work runs on, with everything work needs to know. Passed to every call,
// never global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "device/device.h"

namespace crema {

class MemoryAccount;  // device/memory_account.h
struct Gpu;           // stream and library handles; device/gpu.h, only in CUDA builds

class Context {
 public:
  // On the GPU: opens card `ordinal`; Error when there is none or the build has no CUDA.
  explicit Context(Device device, int ordinal = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  int ordinal() const { return ordinal_; }
  Gpu& gpu() const { return *gpu_; }
  // What Buffers of this context take, and may take; they keep it alive.
  const std::shared_ptr<MemoryAccount>& memory() const { return memory_; }

  // For plans that are made from now on; nothing on a CPU.
  void tune(TuneMode mode);
  // Gives back the memory that plans were tried in.
  void end_tuning();

  // On a GPU, where `overlap` is set, what `work` queues runs beside what is queued afterwards and
  // in other lanes, until join(): it must touch no memory that these write, and no workspace of
  // theirs. Elsewhere, and in lane kHere, it is just called. `meanwhile` is queued here, and first,
  // so that the card begins with it.
  static constexpr int kAsideLanes = 2, kHere = -1;
  bool overlap = false;
  void aside(int lane, const std::function<void()>& work,
             const std::function<void()>& meanwhile = {});
  void join();

  // Waits until all queued work is done; an Error of the device surfaces here.
  void synchronize() const;

  Log& log() const { return *log_; }
  void set_log(Log& log) { log_ = &log; }

  // This process among those that train together.
  int rank = 0;
  int ranks = 1;

  // Everything random is a function of the seed, of who draws, and of the number of the pass.
  uint64_t seed = 1;
  Random random(uint64_t who, uint64_t pass = 0) const { return {seed, mix(who, pass)}; }
  PassRandom random(uint64_t who, uint64_t pass, const uint64_t* live_pass) const {
    return {random(who, pass), who, live_pass};
  }

  // Forces one entry of every kernel's list of implementations (tests, -implementation); "" lets
  // each list decide.
  std::string implementation;
  // What serves the kernels made last, "cudnn", "forward eng0_k24=11": kernels add to it, a plan
  // takes it (-dump_plan).
  std::vector<std::string> served;
  // Kernels made from now on give the same bits on every run; else a GPU's may add up in any order.
  bool repeatable = true;
  // Databases that fit may be kept in a GPU's memory.
  bool resident = true;

 private:
  Device device_;
  int ordinal_;
  Log* log_ = &silent_log();
  std::shared_ptr<MemoryAccount> memory_;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace crema
