#include "python/mode.h"

#include <pthread.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "comm/nccl_engine.h"
#include "device/device.h"
#include "layers/layer_facts.h"
#include "layers/layer_types.h"
#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// OpenMP ends the process when it cannot start as many as it was told.
constexpr int kMostThreads = 1024;

struct Mode {
  std::mutex mutex;
  bool gpu = false;
  int device = 0;
  std::optional<uint64_t> seed;  // the one given
  uint64_t first = 0, taken = 0;
  int threads = 0;  // 0: as many as there are processors
  int change = 0;   // counts the changes of `threads`
};

Mode& mode() {
  static Mode* const mode = new Mode;
  return *mode;
}

void check_gpu(const char* call, int number) {
  require(number >= 0, call, ": GPU ", number, ": they are numbered from 0");
  const int count = gpu_count();
  require(count > 0, call, ": ", gpu_problem());
  require(number < count, call, ": there is no GPU ", number, "; this machine has ", count,
          ", numbered from 0");
}

void set_mode(bool gpu) {
  const std::lock_guard lock(mode().mutex);
  if (gpu) check_gpu("set_mode_gpu()", mode().device);
  mode().gpu = gpu;
}

void set_device(int number) {
  check_gpu("set_device()", number);
  const std::lock_guard lock(mode().mutex);
  mode().device = number;
}

void set_random_seed(uint64_t seed) {
  const std::lock_guard lock(mode().mutex);
  mode().seed = mode().first = seed;
  mode().taken = 0;
}

// Later seeds are a function of the first. They fit into a solver's random_seed.
uint64_t take_seed() {
  const uint64_t number = mode().taken++;
  return number == 0 ? mode().first : mix(mode().first, number) >> 33;
}

void set_threads(int threads) {
  require(threads >= 0 && threads <= kMostThreads, "set_threads(", threads,
          "): expected a number of threads up to ", kMostThreads,
          ", or 0 for as many as there are processors");
  const std::lock_guard lock(mode().mutex);
  mode().threads = threads;
  ++mode().change;
}

// Once after each change, in each thread that computes.
void take_threads() {
  thread_local int known = -1;
  const std::lock_guard lock(mode().mutex);
  if (known == mode().change) return;
  known = mode().change;
  static const int at_start = cpu_threads();
  set_cpu_threads(mode().threads > 0 ? mode().threads : at_start);
  if (mode().threads == 0) limit_threads();
}

int get_threads() {
  take_threads();
  return cpu_threads();
}

}  // namespace

ComputeDevice current_device() {
  const std::lock_guard lock(mode().mutex);
  return mode().gpu ? ComputeDevice::gpu(mode().device) : ComputeDevice::cpu();
}

uint64_t next_seed() {
  const std::lock_guard lock(mode().mutex);
  if (!mode().seed && mode().taken == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    mode().first = mix(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid())) >> 33;
  }
  return take_seed();
}

bool seed_is_chosen() {
  const std::lock_guard lock(mode().mutex);
  return mode().seed.has_value();
}

std::unique_ptr<Context> make_context() {
  const ComputeDevice device = current_device();
  auto context =
      std::make_unique<Context>(device.is_gpu() ? Device::gpu : Device::cpu, device.ordinal());
  take_threads();  // after the context has limited them
  context->set_log(module_log());
  context->tune(TuneMode::quick);
  context->repeatable = false;
  context->seed = next_seed();
  return context;
}

DeviceScope enter(const Context& context) {
  take_threads();
  return DeviceScope(context.device() == Device::gpu ? context.ordinal() : -1);
}

void bind_mode(py::module_& module) {
  // A forked process must not begin with a mutex that one of the threads it lacks has locked.
  pthread_atfork([] { mode().mutex.lock(); }, [] { mode().mutex.unlock(); },
                 [] { mode().mutex.unlock(); });
  module.attr("__version__") = CREMA_VERSION;
  module.attr("TRAIN") = 0;  // as in the schema
  module.attr("TEST") = 1;
  module.def(
      "set_mode_cpu", [] { set_mode(false); },
      "Nets and solvers made from now on compute on the CPU.");
  module.def(
      "set_mode_gpu", [] { set_mode(true); },
      "Nets and solvers made from now on compute on the GPU that set_device() chose, or the first. "
      "Error when there is none.");
  module.def(
      "set_device", &set_device, py::arg("number"),
      "Chooses the GPU for set_mode_gpu(), counted from 0. Error when there is no such GPU.");
  module.def(
      "set_random_seed", &set_random_seed, py::arg("seed"),
      "Seeds what is made from now on: the next net or solver (unless its file has a random_seed) "
      "takes\nthis seed, as random_seed in a solver, and later ones take numbers that follow from "
      "it.");
  module.def("set_threads", &set_threads, py::arg("threads"),
             "Sets the number of CPU threads for all later calls; 0: one per processor.");
  module.def("get_threads", &get_threads, "The number of threads that compute on the CPU.");
  module.def("layer_type_list", &layer_types, "The names of all layer types.");
  module.def(
      "_loss_types",
      [] {
        std::vector<std::string> types = layer_types();
        std::erase_if(types,
                      [](const auto& type) { return facts_of(type).kind != LayerKind::loss; });
        return types;
      },
      "The names of the layer types that compute a loss.");
  module.def("has_nccl", &has_nccl, "Whether several GPUs can train together through NCCL.");
}

}  // namespace crema::python
