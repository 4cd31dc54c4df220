// Histograms: how often each bin comes up. The counts are integers, so the order of additions does
// not matter. For .cu files only, like device/parallel.h.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "device/parallel.h"

namespace crema {

// Passed to the body of parallel_counts().
struct Counter {
  int32_t* counts;
  CREMA_HD void add(int64_t bin) const {
#ifdef __CUDA_ARCH__
    atomicAdd(counts + bin, 1);
#else
    ++counts[bin];
#endif
  }
};

#ifdef __CUDACC__
// Each block first counts in shared memory, if the bins fit there.
template <typename Body>
__global__ void __launch_bounds__(256)
    run_counts(int64_t count, int64_t bins, bool shared, Body body, int32_t* counts) {
  extern __shared__ int32_t of_block[];
  for (int64_t bin = threadIdx.x; shared && bin < bins; bin += 256) of_block[bin] = 0;
  __syncthreads();
  const Counter counter{shared ? of_block : counts};
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < count;
       i += gridDim.x * int64_t{256})
    body(i, counter);
  __syncthreads();
  for (int64_t bin = threadIdx.x; shared && bin < bins; bin += 256) {
    if (of_block[bin] > 0) atomicAdd(counts + bin, of_block[bin]);
  }
}
#endif

// Adds to counts[bin], for bin < bins, the number of times that body(i, counter), over all i <
// count, calls counter.add(bin). Body is a struct with a CREMA_HD const operator().
template <typename Body>
void add_counts(Context& context, int64_t count, int64_t bins, const Body& body, int32_t* counts) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    const size_t bytes = static_cast<size_t>(bins) * sizeof(int32_t);
    const bool shared = bytes <= 16384;
    const int64_t blocks =
        std::clamp<int64_t>(ceil_div(count, 256), 1, kTypicalMultiprocessors * 8);
    return launch(context.gpu(), run_counts<Body>,
                  {static_cast<unsigned>(blocks), 256, shared ? bytes : 0}, count, bins, shared,
                  body, counts);
  }
#endif
  (void)context;
#pragma omp parallel if (count > 4096)
  {
    std::vector<int32_t> own(bins);
    const Body local = body;
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < count; ++i) local(i, Counter{own.data()});
#pragma omp critical(crema_counts)
    for (int64_t bin = 0; bin < bins; ++bin) counts[bin] += own[bin];
  }
}

// The same, but first sets the counts to 0.
template <typename Body>
void parallel_counts(Context& context, int64_t count, int64_t bins, const Body& body,
                     int32_t* counts) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    check_cuda(cudaMemsetAsync(counts, 0, static_cast<size_t>(bins) * sizeof(int32_t),
                               context.gpu().stream),
               "clearing counts");
    return add_counts(context, count, bins, body, counts);
  }
#endif
  std::fill(counts, counts + bins, 0);
  add_counts(context, count, bins, body, counts);
}

}  // namespace crema
