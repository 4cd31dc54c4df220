// Work on a side stream runs at the same time as other work: it must share no memory with it.
#include <gtest/gtest.h>

#include <set>

#include "device/gpu.h"

namespace crema {
namespace side_stream_test_gpu {

TEST(Aside, LanesHaveTheirOwnStreamsAndMemoryForSums) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  context.overlap = true;
  const Gpu& gpu = context.gpu();
  // They are opened when they are needed; the account has their memory from the start.
  const size_t taken = context.memory()->taken();
  EXPECT_EQ(gpu.unopened_bytes(), Context::kSideStreams * GpuStream::kBytes);
  const GpuStream first = gpu;
  std::set<const void*> all = {first.stream, first.partial_sums, first.counters,
                               first.blas_workspace};
  for (int side_stream = 0; side_stream < Context::kSideStreams; ++side_stream) {
    context.on_side_stream(side_stream, [&] {
      for (const void* own :
           {static_cast<const void*>(gpu.stream), static_cast<const void*>(gpu.partial_sums),
            static_cast<const void*>(gpu.counters), static_cast<const void*>(gpu.blas_workspace)})
        EXPECT_TRUE(all.insert(own).second) << "lane " << side_stream;
    });
    EXPECT_EQ(gpu.stream, first.stream);
    EXPECT_EQ(gpu.partial_sums, first.partial_sums);
    EXPECT_EQ(gpu.counters, first.counters);
    EXPECT_EQ(gpu.blas_workspace, first.blas_workspace);
  }
  context.join();
  EXPECT_EQ(gpu.unopened_bytes(), 0u);
  EXPECT_EQ(context.memory()->taken(), taken);
}

}  // namespace side_stream_test_gpu
}  // namespace crema
