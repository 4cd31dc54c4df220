// Context: the device that work runs on, with everything work needs to know. Passed to every call,
// never global.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/random.h"
#include "device/device.h"

namespace crema {

struct Gpu;  // stream and library handles; device/gpu.h, only in CUDA builds

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

  // Forces one entry of every kernel's list of implementations (tests, -implementation); "" lets
  // each list decide.
  std::string implementation;

 private:
  Device device_;
  int ordinal_;
  Log* log_ = &silent_log();
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace crema
