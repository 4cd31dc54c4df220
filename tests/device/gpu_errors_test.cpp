// Names of GPU errors. The messages are made without a GPU.
#ifdef CREMA_CUDA
#include "device/gpu_errors.h"

#include <gtest/gtest.h>

#include "device/gpu.h"
#include "support.h"

namespace crema::tests {
namespace gpu_errors_test {

constexpr CudaVersions kVersions{12040, 13000};

TEST(GpuErrors, NoDriverAndAnOldOneAreToldApart) {
  expect_part(explain(cudaErrorInsufficientDriver, {0, 13000}),
              "no NVIDIA driver is installed (cudaErrorInsufficientDriver); install one that "
              "supports CUDA 13.0");
  expect_part(explain(cudaErrorInsufficientDriver, kVersions),
              "driver is too old: it supports CUDA 12.4, this program needs 13.0");
}

TEST(GpuErrors, EachSaysWhatToDo) {
  expect_part(explain(cudaErrorNoDevice, kVersions), "nvidia-smi");
  expect_part(explain(cudaErrorInvalidDevice, kVersions), "crema device_query");
  expect_part(explain(cudaErrorMemoryAllocation, kVersions), "batch_size");
  expect_part(explain(cudaErrorNoKernelImageForDevice, kVersions), "CMAKE_CUDA_ARCHITECTURES");
  expect_part(explain(cudaErrorECCUncorrectable, kVersions), "nvidia-smi -q -d ECC");
  expect_part(explain(cudaErrorLaunchFailure, kVersions), "dmesg");
  expect_part(explain(cudaErrorInvalidValue, kVersions), "CUDA says");  // nothing better is known
}

TEST(GpuErrors, OutOfMemoryGivesTheSizes) {
  expect_part(out_of_gpu_memory(size_t{3} << 30, size_t{1} << 29, size_t{16} << 30),
              "3.0 GiB requested, 512.0 MiB of 16.0 GiB free");
}

TEST(GpuErrors, WhatEndsTheDeviceIsAnErrorOfItsOwn) {
  for (cudaError_t status : {cudaErrorECCUncorrectable, cudaErrorLaunchFailure, cudaErrorUnknown,
                             cudaErrorIllegalAddress, cudaErrorLaunchTimeout}) {
    EXPECT_TRUE(loses_device(status)) << cudaGetErrorName(status);
    EXPECT_THROW(check_cuda(status, "waiting for the GPU"), DeviceLost);
  }
  for (cudaError_t status : {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                             cudaErrorStreamCaptureInvalidated, cudaErrorNoDevice}) {
    EXPECT_FALSE(loses_device(status)) << cudaGetErrorName(status);
    try {
      check_cuda(status, "testing");
      ADD_FAILURE();
    } catch (const DeviceLost&) {
      ADD_FAILURE() << cudaGetErrorName(status);
    } catch (const Error& error) {
      expect_part(error.what(), "testing failed: ");
    }
  }
}

TEST(GpuErrors, AMachineWithoutGpusSaysWhy) {
  if (gpu_count() > 0) {
    EXPECT_EQ(gpu_problem(), "");
    expect_part(error_of([] { Context(Device::gpu, 999); }), "GPU 999 does not exist");
    return;
  }
  EXPECT_NE(gpu_problem(), "");
  expect_part(error_of([] { Context(Device::gpu, 0); }), gpu_problem());
}

}  // namespace gpu_errors_test
}  // namespace crema::tests
#endif
