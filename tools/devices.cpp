#include "tools/devices.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/system.h"
#include "device/cudnn.h"
#include "device/device_scope.h"
#include "device/memory.h"
#include "device/memory_account.h"
#include "kernels/core/kernel_registry.h"
#include "tools/flags/net_flags.h"
#include "tools/measure/driver_memory.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

std::vector<int> gpus_of(const std::string& flag) {
  const int count = gpu_count();
  if (count == 0) fail("-gpu ", flag, ": ", gpu_problem());
  std::vector<int> gpus;
  if (flag == "all") {
    for (int i = 0; i < count; ++i) gpus.push_back(i);
    return gpus;
  }
  for (const std::string& part : split(flag, ',')) {
    int number = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    require(error == std::errc() && end == part.data() + part.size(), "-gpu ", flag, ": \"", part,
            "\" is not a GPU number; expected a number such as 0, or all");
    require(number >= 0 && number < count, "-gpu ", flag, ": there is no GPU ", number,
            "; this machine has ", count,
            count == 1 ? " (number 0)" : cat(" (numbers 0 to ", count - 1, ")"),
            "; `crema device_query` lists them");
    gpus.push_back(number);
  }
  return gpus;
}

namespace {

TuneMode tune_mode_of(const DeviceFlags& flags) {
  // Kernels differ in the last bits: a choice by timing would vary between runs.
  if (flags.deterministic) return TuneMode::off;
  const std::vector<std::string> names = {"off", "quick", "full"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (flags.tune == names[i]) return static_cast<TuneMode>(i);
  }
  fail("-tune ", flags.tune, ": expected off, quick or full");
}

void limit_memory(const std::string& amount, Context& context) {
  if (amount.empty()) return;
  const std::string flag = "-gpu_memory " + amount;
  size_t bytes = 0;
  try {
    bytes = allowed_memory(amount, total_memory(context));
  } catch (const Error& error) {
    fail(flag, ": ", error.what());
  }
  if (context.device() == Device::gpu) {
    context.memory()->limit(bytes, flag);
  } else {
    context.log().warning(flag + " has no effect: the CPU computes");
  }
}

// "memory 80 %, " for -gpu_memory 0.8, "memory 8.0 GiB, " for 8GiB; "" without a limit.
std::string memory_part(const std::string& amount, const Context& context) {
  const MemoryAccount& account = *context.memory();
  if (!account.limited()) return "";
  double share = 0;
  const char* const end = amount.data() + amount.size();
  const bool is_share = std::from_chars(amount.data(), end, share).ptr == end;
  return cat("memory ", is_share ? cat(100 * share, " %") : size_text(account.limit()), ", ");
}

// "cuDNN 9.19, ", of the library that was loaded, or "no cuDNN, ".
std::string cudnn_part() {
  const int version = cudnn_version();
  if (version == 0) return "no cuDNN, ";
  return cat("cuDNN ", version / 10000, ".", version / 100 % 100, ", ");
}

}  // namespace

std::unique_ptr<Context> make_context(ProgramLog& log, const DeviceFlags& flags, int wanted) {
  const std::string& gpu = flags.gpu;
  check_implementation(flags.implementation);
  std::unique_ptr<Context> context;
  if (!gpu.empty()) {
    const bool several = gpu.find(',') != std::string::npos;
    const std::string only = "only train and test use several GPUs; name one, such as -gpu 0";
    require(!several, "-gpu ", gpu, ": ", only);
    require(gpu_count() > 0, "-gpu ", gpu, ": ", gpu_problem(),
            "; leave out -gpu: then the CPU computes");
    const std::vector<int> gpus = gpus_of(gpu);
    require(gpus.size() == 1, "-gpu ", gpu, ": this machine has ", gpus.size(), " GPUs, and ",
            only);
    context = std::make_unique<Context>(Device::gpu, gpus[0]);
  } else if (wanted >= 0 && wanted < gpu_count()) {
    context = std::make_unique<Context>(Device::gpu, wanted);
  } else {
    if (wanted >= 0) {
      log.warning(gpu_count() == 0
                      ? cat("The solver asks for a GPU, but the CPU computes: ", gpu_problem())
                      : cat("The solver asks for GPU ", wanted, ", but there are only ",
                            gpu_count(), ": the CPU computes."));
    }
    context = std::make_unique<Context>(Device::cpu);
  }
  context->set_log(log.library());
  context->implementation = flags.implementation;
  context->tune(tune_mode_of(flags));
  context->repeatable = flags.deterministic;
  limit_memory(flags.gpu_memory, *context);
  context->resident = switches_of_flag(flags.off).resident;
  return context;
}

void log_device(ProgramLog& log, const DeviceFlags& flags, const Context& context,
                Precision precision) {
  if (context.device() == Device::cpu) {
    const int threads = cpu_threads();
    log.info(cat("Using CPU: ", threads, threads == 1 ? " thread" : " threads", " (",
                 name_of(precision), ")"));
#ifdef CREMA_ONEDNN
    if (!may_generate_code())
      log.warning(
          "This process may not generate code (MemoryDenyWriteExecute or similar), which oneDNN "
          "needs: convolutions and products run on plain kernels, several times slower");
#endif
    return;
  }
  log.info(cat("Using GPU ", context.ordinal(), ": ", gpu_name(context.ordinal()), " (",
               memory_part(flags.gpu_memory, context), cudnn_part(), name_of(precision), ")"));
}

ProcessMemory process_memory(const Context& context) {
  ProcessMemory memory;
#ifdef CREMA_CUDA
  if (context.device() == Device::cpu) return memory;
  char bus_id[32] = "";
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, context.ordinal()) != cudaSuccess) {
    cudaGetLastError();
    return memory;
  }
  memory.all = driver_memory(bus_id).bytes;
  const size_t own = context.memory()->taken() - context.gpu().unopened_bytes();
  memory.libraries = memory.all > own ? memory.all - own : 0;
#else
  (void)context;
#endif
  return memory;
}

void log_process_memory(ProgramLog& log, const Context& context) {
  const ProcessMemory memory = process_memory(context);
  if (memory.all == 0) return;
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  const bool eager = loading && std::string_view(loading) == "EAGER";
  log.info(cat("Memory of the process on the GPU: ", size_text(memory.all), ", of which ",
               size_text(memory.libraries), " are for CUDA's context, libraries and kernels",
               eager ? "; CUDA_MODULE_LOADING=EAGER loads kernels that are never used" : ""));
}

std::string gpu_name(int ordinal) {
#ifdef CREMA_CUDA
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "asking for a GPU's properties");
  return properties.name;
#else
  return cat("GPU ", ordinal);
#endif
}

}  // namespace crema
