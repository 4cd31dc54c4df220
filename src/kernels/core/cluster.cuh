// Thread block clusters, whose blocks share their memory, on GPUs that have them; elsewhere a
// cluster is one block. Only for device code.
#pragma once

#include "device/launch.h"
#ifdef __CUDACC__
#include <cooperative_groups.h>
#endif

namespace crema {

#ifdef __CUDACC__
// Waits for all threads of the cluster; what they wrote to its shared memory is visible afterwards.
__device__ inline void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  cooperative_groups::this_cluster().sync();
#else
  __syncthreads();
#endif
}

// The barrier in two halves, with work in between: after the second all blocks of the cluster are
// running. Does not order memory accesses.
__device__ inline void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;");
#endif
}
__device__ inline void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// The rank of this block in its cluster, and the cluster's size.
__device__ inline int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  return static_cast<int>(cooperative_groups::this_cluster().block_rank());
#else
  return 0;
#endif
}
__device__ inline int cluster_blocks() {
#if __CUDA_ARCH__ >= 900
  return static_cast<int>(cooperative_groups::this_cluster().num_blocks());
#else
  return 1;
#endif
}

// The address of `mine` in the shared memory of the cluster's block `rank`.
template <typename T>
__device__ T* of_cluster(T* mine, int rank) {
#if __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
#else
  (void)rank;
  return mine;
#endif
}
#endif

}  // namespace crema
