// Module-wide settings for later nets and solvers: the device (set_mode_cpu, set_mode_gpu,
// set_device), the seed (set_random_seed), the log (init_log) and the number of threads
// (set_threads).
#pragma once

#include <cstdint>
#include <memory>

#include "base/log.h"
#include "crema.h"
#include "device/context.h"
#include "device/device_scope.h"

namespace crema::python {

// The device of nets and solvers created now.
ComputeDevice current_device();

// Destination of log lines: stderr, as with glog, unless init_log or the variable GLOG_minloglevel
// silences them. Lives as long as the process.
TextLog& module_log();

// The seed of the next net: the one given to set_random_seed() for the first after that call, then
// numbers that follow from it; from the clock where none was given. Each call takes one.
uint64_t next_seed();
// Whether set_random_seed() was called.
bool seed_is_chosen();

// A context on the current device, with the module's log and the next seed; kernels are tuned as in
// the tools without -deterministic. Error if there is no such device.
std::unique_ptr<Context> make_context();

// Begins every call that computes: the calling thread, which may be another one each time, takes the
// number of threads that was set, and its GPU becomes current until the object goes.
//   const DeviceScope scope = enter(context);
DeviceScope enter(const Context& context);

}  // namespace crema::python
