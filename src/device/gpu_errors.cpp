#include "device/gpu_errors.h"

#include "base/strings.h"

namespace crema {
namespace {

struct Explanation {
  cudaError_t status;
  const char *meaning, *way_out;
  bool lost = false;
};

constexpr const char* kNvidiaSmi = "`nvidia-smi` shows the cards and who uses them";
constexpr const char* kOurs = "please report it with the net and the command";

constexpr Explanation kExplanations[] = {
    {cudaErrorNoDevice, "the driver reports no GPU",
     "`nvidia-smi` tells more; without -gpu the CPU computes"},
    {cudaErrorInvalidDevice, "there is no such GPU", "`crema device_query` lists those there are"},
    {cudaErrorMemoryAllocation, "out of GPU memory",
     "a smaller batch_size (with iter_size to make up for it) needs less, -gpu_memory says before "
     "the start what would fit"},
    {cudaErrorDevicesUnavailable, "the GPU is in use by another process that does not share it",
     kNvidiaSmi},
    {cudaErrorNoKernelImageForDevice, "this build has no code for this kind of GPU",
     "build with -DCMAKE_CUDA_ARCHITECTURES=native"},
    {cudaErrorUnsupportedPtxVersion, "the driver is too old for the code of this build",
     "install a newer NVIDIA driver, or build with -DCMAKE_CUDA_ARCHITECTURES=native"},
    {cudaErrorSystemDriverMismatch, "the parts of the NVIDIA driver are of different versions",
     "restart the machine after an update of the driver"},
    {cudaErrorSystemNotReady, "the machine's GPUs are not set up yet",
     "see whether the services of the driver run (nvidia-fabricmanager)"},

    {cudaErrorECCUncorrectable, "the GPU's memory has failed (an ECC error without a correction)",
     "if it comes again the card needs a reset or is broken: `nvidia-smi -q -d ECC`", true},
    {cudaErrorNvlinkUncorrectable, "the link between GPUs has failed", kNvidiaSmi, true},
    {cudaErrorLaunchTimeout, "the system stopped work that took too long",
     "a GPU that also drives a display has a time limit: use another one, or smaller batches",
     true},
    {cudaErrorLaunchFailure, "work on the GPU has crashed, or the GPU was lost",
     "`dmesg | grep Xid` says which", true},
    {cudaErrorUnknown, "the GPU was lost, or its driver has failed",
     "`dmesg | grep Xid` tells more; perhaps the machine needs a restart", true},
    {cudaErrorContextIsDestroyed, "the GPU was reset under this program", kNvidiaSmi, true},
    {cudaErrorIllegalAddress, "work on the GPU accessed memory that it must not", kOurs, true},
    {cudaErrorMisalignedAddress, "work on the GPU used a misaligned address", kOurs, true},
    {cudaErrorInvalidAddressSpace, "work on the GPU used an invalid address", kOurs, true},
    {cudaErrorInvalidPc, "work on the GPU jumped to an invalid address", kOurs, true},
    {cudaErrorIllegalInstruction, "work on the GPU hit an illegal instruction", kOurs, true},
    {cudaErrorHardwareStackError, "work on the GPU overran its stack", kOurs, true},
    {cudaErrorAssert, "a check of work on the GPU has failed", kOurs, true},
};

const Explanation* find(cudaError_t status) {
  for (const Explanation& explanation : kExplanations) {
    if (explanation.status == status) return &explanation;
  }
  return nullptr;
}

std::string version(int number) { return cat(number / 1000, ".", number % 1000 / 10); }

}  // namespace

CudaVersions cuda_versions() {
  CudaVersions versions;
  cudaDriverGetVersion(&versions.driver);
  cudaRuntimeGetVersion(&versions.runtime);
  return versions;
}

std::string explain(cudaError_t status, const CudaVersions& versions) {
  const std::string name = cat(" (", cudaGetErrorName(status), ")");
  if (status == cudaErrorInsufficientDriver && versions.driver == 0)
    return cat("no NVIDIA driver is installed", name, "; install one that supports CUDA ",
               version(versions.runtime));
  if (status == cudaErrorInsufficientDriver)
    return cat("the NVIDIA driver is too old: it supports CUDA ", version(versions.driver),
               ", this program needs ", version(versions.runtime), name,
               "; install a newer driver");
  if (const Explanation* known = find(status))
    return cat(known->meaning, name, "; ", known->way_out);
  return cat("CUDA says \"", cudaGetErrorString(status), "\"", name);
}

bool loses_device(cudaError_t status) {
  const Explanation* known = find(status);
  return known && known->lost;
}

std::string out_of_gpu_memory(size_t wanted, size_t free, size_t total) {
  return cat("out of GPU memory: ", size_text(wanted), " requested, ", size_text(free), " of ",
             size_text(total),
             " free; a smaller batch_size (with iter_size to make up for it) needs less, and other "
             "programs on the same GPU take their share (`nvidia-smi` lists them)");
}

}  // namespace crema
