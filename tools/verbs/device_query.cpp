// `crema device_query [-gpu 0,1|all]`: describes the GPUs in Caffe's log format, and measures their
// speed and the CPU's.
#include <memory>

#include "device/cudnn.h"
#include "device/device.h"
#include "device/device_scope.h"
#include "tools/devices.h"
#include "tools/measure/device_speed.h"
#include "tools/verb.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

namespace {

using DeviceQueryFlags = FlagsOf<"gpu">;

#ifdef CREMA_CUDA
int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, gpu), "asking for an attribute of a GPU");
  return value;
}

void describe(ProgramLog& log, int gpu) {
  cudaDeviceProp card{};
  check_cuda(cudaGetDeviceProperties(&card, gpu), "asking for a GPU's properties");
  const auto yes_or_no = [](int value) { return value ? "Yes" : "No"; };
  log.answer(cat("Device id:                     ", gpu));
  log.answer(cat("Major revision number:         ", card.major));
  log.answer(cat("Minor revision number:         ", card.minor));
  log.answer(cat("Name:                          ", card.name));
  log.answer(cat("Total global memory:           ", card.totalGlobalMem));
  log.answer(cat("Total shared memory per block: ", card.sharedMemPerBlock));
  log.answer(cat("Total registers per block:     ", card.regsPerBlock));
  log.answer(cat("Warp size:                     ", card.warpSize));
  log.answer(cat("Maximum memory pitch:          ", card.memPitch));
  log.answer(cat("Maximum threads per block:     ", card.maxThreadsPerBlock));
  log.answer(cat("Maximum dimension of block:    ", card.maxThreadsDim[0], ", ",
                 card.maxThreadsDim[1], ", ", card.maxThreadsDim[2]));
  log.answer(cat("Maximum dimension of grid:     ", card.maxGridSize[0], ", ", card.maxGridSize[1],
                 ", ", card.maxGridSize[2]));
  log.answer(cat("Clock rate:                    ", attribute(cudaDevAttrClockRate, gpu)));
  log.answer(cat("Total constant memory:         ", card.totalConstMem));
  log.answer(cat("Texture alignment:             ", card.textureAlignment));
  log.answer(cat("Concurrent copy and execution: ", yes_or_no(card.asyncEngineCount)));
  log.answer(cat("Number of multiprocessors:     ", card.multiProcessorCount));
  log.answer(cat("Kernel execution timeout:      ",
                 yes_or_no(attribute(cudaDevAttrKernelExecTimeout, gpu))));
  int runtime = 0, driver = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for CUDA's version");
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  const auto version = [](int v) { return cat(v / 1000, ".", v % 1000 / 10); };
  log.answer(cat("CUDA, of the driver at most:   ", version(runtime), ", ", version(driver)));
  const int cudnn = cudnn_version();
  log.info(cat("cuDNN:                         ",
               cudnn == 0 ? "none (built with -DCREMA_CUDNN=OFF)"
                          : cat(cudnn / 10000, ".", cudnn / 100 % 100, ".", cudnn % 100)));
  Context context(Device::gpu, gpu);
  context.set_log(log);
  // Tensor cores: float16 since Volta, the others since Ampere.
  std::vector<Precision> precisions = {Precision::fp32};
  if (card.major >= 8) precisions.insert(precisions.end(), {Precision::tf32, Precision::bf16});
  if (card.major >= 7) precisions.push_back(Precision::fp16);
  log_device_speed(log, context, precisions);
}
#else
void describe(ProgramLog&, int) {}
#endif

void describe_cpu(ProgramLog& log) {
  Context context(Device::cpu);
  context.set_log(log);
  log.answer(cat("CPU threads:                   ", cpu_threads()));
  log_device_speed(log, context, {Precision::fp32});
}

int run_device_query(const VerbCall& call, const DeviceQueryFlags& flags) {
  if (flags.gpu.empty() && gpu_count() == 0) {
    call.log.answer(cat("No GPU: ", gpu_problem(), "."));
    describe_cpu(call.log);
    return 0;
  }
  const std::string which = flags.gpu.empty() ? "all" : flags.gpu;
  const std::vector<int> gpus = gpus_of(which);
  call.log.info("Querying GPUs " + which);
  for (const int gpu : gpus) describe(call.log, gpu);
  if (flags.gpu.empty()) describe_cpu(call.log);
  return 0;
}

REGISTER_VERB(
    device_query,
    {.summary = "lists the GPUs and the CPU with their capabilities",
     .usage = "[-gpu 0,1|all]",
     .example = "crema device_query -gpu all",
     .meanings = {{"gpu",
                   "The GPUs: numbers separated by commas, or all. Empty: all, and the CPU."}},
     .run = run_device_query});

}  // namespace

}  // namespace crema
