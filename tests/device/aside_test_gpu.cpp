// Work aside runs at the same time as other work: it must share no memory with it.
#include <gtest/gtest.h>

#include "device/gpu.h"

namespace crema {
namespace {

TEST(Aside, HasItsOwnStreamAndMemoryForSums) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  context.overlap = true;
  const Gpu& gpu = context.gpu();
  const cudaStream_t stream = gpu.stream;
  const float* const parts = gpu.parts;
  const unsigned* const counters = gpu.counters;
  const void* const workspace = gpu.blas_workspace;
  context.aside([&] {
    EXPECT_NE(gpu.stream, stream);
    EXPECT_NE(gpu.parts, parts);
    EXPECT_NE(gpu.counters, counters);
    EXPECT_NE(gpu.blas_workspace, workspace);
  });
  EXPECT_EQ(gpu.stream, stream);
  EXPECT_EQ(gpu.parts, parts);
  EXPECT_EQ(gpu.counters, counters);
  EXPECT_EQ(gpu.blas_workspace, workspace);
  context.join();
}

}  // namespace
}  // namespace crema
