#include "device/gpu.h"

#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "base/error.h"
#include "comm/gpu_barrier.h"

namespace crema {
namespace {

constexpr int kSpacing = 16;  // distance of flags, in words: one per cache line

using BatchMemOp = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);

// The driver is not linked, because a GPU build runs without one. Null if it does not have the
// function.
BatchMemOp batch_mem_op() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function,
                                                              12000, cudaEnableDefault, &found);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuStreamBatchMemOp", &function, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess
             ? reinterpret_cast<BatchMemOp>(function)
             : nullptr;
}

}  // namespace

GpuBarrier::~GpuBarrier() { unmap(); }

void GpuBarrier::unmap() {
  if (on_gpu_)
    cudaHostUnregister(flags_);  // waits for the GPU: until then it may have to be released
  on_gpu_ = 0;
  releasing_ = {};
  if (flags_) munmap(flags_, bytes_);
  flags_ = nullptr;
}

uint32_t* GpuBarrier::flag(int round, int of_rank, int from_rank) const {
  return flags_ + ((round * ranks_ + of_rank) * ranks_ + from_rank) * kSpacing;
}

bool GpuBarrier::open(const Gather& gather) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = 2 * static_cast<size_t>(ranks_ * ranks_ * kSpacing) * sizeof(uint32_t);
  bytes_ = (bytes_ + page - 1) / page * page;
  std::string name;
  int file = -1;
  if (rank_ == 0) {
    std::random_device random;
    name = cat("/crema-", random(), "-", random());
    file = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes_)) != 0) {
      ::close(file);
      file = -1;
    }
  }
  const std::string of_first = gather(name)[0];
  if (rank_ > 0) file = shm_open(of_first.c_str(), O_RDWR, 0600);
  gather("");  // all have opened it
  if (rank_ == 0) shm_unlink(name.c_str());
  if (file < 0) return false;
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) return false;
  flags_ = static_cast<uint32_t*>(mapped);
  void* on_gpu = nullptr;
  if (!batch_mem_op() || cudaHostRegister(flags_, bytes_, cudaHostRegisterMapped) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  check_cuda(cudaHostGetDevicePointer(&on_gpu, flags_, 0), "sharing flags between GPUs");
  on_gpu_ = reinterpret_cast<uint64_t>(on_gpu);
  return true;
}

void GpuBarrier::queue(Context& context, int round) {
  static const BatchMemOp queue_operations = batch_mem_op();
  std::vector<CUstreamBatchMemOpParams> operations;
  const auto at = [&](int of_rank, int from_rank) {
    return on_gpu_ +
           static_cast<uint64_t>(flag(round, of_rank, from_rank) - flags_) * sizeof(uint32_t);
  };
  const auto write = [&](CUdeviceptr address, uint32_t value) {
    CUstreamBatchMemOpParams& operation = operations.emplace_back();
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = address;
    operation.writeValue.value = value;
    operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // after all earlier work
  };
  const auto each_other = [&](const auto& work) {
    for (int i = 1; i < ranks_; ++i) work((rank_ + i) % ranks_);
  };
  each_other([&](int other) { write(at(other, rank_), 1); });
  each_other([&](int other) {
    CUstreamBatchMemOpParams& operation = operations.emplace_back();
    operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operation.waitValue.address = at(rank_, other);
    operation.waitValue.value = 1;
    operation.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  });
  each_other([&](int other) { write(at(rank_, other), 0); });
  if (operations.empty()) return;
  const CUresult status = queue_operations(
      context.gpu().stream, static_cast<unsigned>(operations.size()), operations.data(), 0);
  require(status == CUDA_SUCCESS, "waiting for other GPUs failed: CUDA's driver says error ",
          static_cast<int>(status));
}

void GpuBarrier::release() {
  if (!on_gpu_ || released_.exchange(true)) return;
  releasing_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int round = 0; round < 2; ++round) {
        for (int other = 0; other < ranks_; ++other)
          std::atomic_ref<uint32_t>(*flag(round, rank_, other)).store(1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
}

}  // namespace crema
