// `crema device_query [-gpu 0,1|all]`: describes the GPUs in Caffe's log format.
#include "device/device.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/verb.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

namespace {

#ifdef CREMA_CUDA
int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, gpu), "asking for an attribute of a GPU");
  return value;
}

void describe(Log& log, int gpu) {
  cudaDeviceProp card{};
  check_cuda(cudaGetDeviceProperties(&card, gpu), "asking for a GPU's properties");
  const auto yes_or_no = [](int value) { return value ? "Yes" : "No"; };
  log.info(cat("Device id:                     ", gpu));
  log.info(cat("Major revision number:         ", card.major));
  log.info(cat("Minor revision number:         ", card.minor));
  log.info(cat("Name:                          ", card.name));
  log.info(cat("Total global memory:           ", card.totalGlobalMem));
  log.info(cat("Total shared memory per block: ", card.sharedMemPerBlock));
  log.info(cat("Total registers per block:     ", card.regsPerBlock));
  log.info(cat("Warp size:                     ", card.warpSize));
  log.info(cat("Maximum memory pitch:          ", card.memPitch));
  log.info(cat("Maximum threads per block:     ", card.maxThreadsPerBlock));
  log.info(cat("Maximum dimension of block:    ", card.maxThreadsDim[0], ", ",
               card.maxThreadsDim[1], ", ", card.maxThreadsDim[2]));
  log.info(cat("Maximum dimension of grid:     ", card.maxGridSize[0], ", ", card.maxGridSize[1],
               ", ", card.maxGridSize[2]));
  log.info(cat("Clock rate:                    ", attribute(cudaDevAttrClockRate, gpu)));
  log.info(cat("Total constant memory:         ", card.totalConstMem));
  log.info(cat("Texture alignment:             ", card.textureAlignment));
  log.info(cat("Concurrent copy and execution: ", yes_or_no(card.asyncEngineCount)));
  log.info(cat("Number of multiprocessors:     ", card.multiProcessorCount));
  log.info(cat("Kernel execution timeout:      ",
               yes_or_no(attribute(cudaDevAttrKernelExecTimeout, gpu))));
}
#else
void describe(Log&, int) {}
#endif

int run_device_query(const VerbCall& call) {
  if (FLAGS_gpu.empty() && gpu_count() == 0) {
    call.log.info(cat("No GPU: ", gpu_problem(), "."));
    return 0;
  }
  const std::string which = FLAGS_gpu.empty() ? "all" : FLAGS_gpu;
  const std::vector<int> gpus = gpus_of(which);
  call.log.info("Querying GPUs " + which);
  for (const int gpu : gpus) describe(call.log, gpu);
  return 0;
}

REGISTER_VERB(device_query, {.summary = "prints the properties of the GPUs",
                             .usage = "[-gpu 0,1|all]",
                             .flags = {"gpu"},
                             .run = run_device_query});

}  // namespace

}  // namespace crema
