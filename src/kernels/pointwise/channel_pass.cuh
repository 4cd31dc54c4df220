// One pass over tensors seen as a ChannelView, on the GPU: each element becomes a function of one
// or two inputs and of its channel's values, and the function's additional outputs are summed per
// channel, in an order that depends on sizes alone. Only for .cu files of a CUDA build.
//   struct ScaleGradient {
//     static constexpr int kInputs = 2, kValues = 1, kSums = 1;
//     CREMA_HD static float apply(const float* in, const float* value, float* sum) {
//       sum[0] = in[0] * in[1];
//       return in[0] * value[0];
//     }
//   };
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "device/multiprocessors.h"
#include "kernels/pointwise/channel.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {

struct ChannelPassTensors {
  Tensor in[2], out;        // of one shape; out may be an input; empty: nothing is written
  Tensor value[2], sum[2];  // one per channel, in float32 or in the inputs' type; or empty
  bool accumulate[2] = {};  // sums are added to the old values
};

namespace channel_pass_gpu {

// Missing values default to 1 for the first, a factor, and to 0 for the second.
template <typename T>
struct Value {
  const float* wide;
  const T* narrow;
  float missing;

  Value() = default;
  Value(const Tensor& tensor, float otherwise)
      : wide(tensor && tensor.dtype() == DType::f32 ? tensor.data<float>() : nullptr),
        narrow(tensor && !wide ? tensor.data<T>() : nullptr),
        missing(otherwise) {}
  __device__ float at(int64_t c) const {
    return wide ? wide[c] : narrow ? static_cast<float>(narrow[c]) : missing;
  }
};

template <typename T>
struct Sum {
  float* wide;
  T* narrow;
  bool accumulate;

  Sum() = default;
  Sum(const Tensor& tensor, bool adds)
      : wide(tensor && tensor.dtype() == DType::f32 ? tensor.data<float>() : nullptr),
        narrow(tensor && !wide ? tensor.data<T>() : nullptr),
        accumulate(adds) {}
  __device__ void put(int64_t c, double sum) const {
    const auto value = static_cast<float>(sum);
    if (wide) wide[c] = accumulate ? wide[c] + value : value;
    if (narrow) narrow[c] = accumulate ? static_cast<float>(narrow[c]) + value : value;
  }
};

template <typename T, int kPack, typename F>
struct Pass {
  static constexpr int kSums = F::kSums > 0 ? F::kSums : 1;
  const T* in[F::kInputs];
  T* out;
  Value<T> value[F::kValues];
  Sum<T> sum[kSums];

  explicit Pass(const ChannelPassTensors& t) : out(t.out.data<T>()) {
    for (int i = 0; i < F::kInputs; ++i) in[i] = t.in[i].data<T>();
    for (int i = 0; i < F::kValues; ++i) value[i] = Value<T>(t.value[i], i == 0 ? 1.0f : 0.0f);
    for (int i = 0; i < kSums; ++i) sum[i] = Sum<T>(t.sum[i], t.accumulate[i]);
  }

  struct Loaded {
    Pack<T, kPack> in[F::kInputs];
  };
  __device__ Loaded load(int64_t at) const {
    Loaded loaded;
#pragma unroll
    for (int i = 0; i < F::kInputs; ++i)
      loaded.in[i] = *reinterpret_cast<const Pack<T, kPack>*>(in[i] + at);
    return loaded;
  }
  // One element of a pack; the result overwrites the first input.
  __device__ static void apply(Loaded& loaded, int k, const float* values, float* terms) {
    float inputs[F::kInputs];
#pragma unroll
    for (int i = 0; i < F::kInputs; ++i) inputs[i] = loaded.in[i].v[k];
    loaded.in[0].v[k] = F::apply(inputs, values, terms);
  }
  __device__ void store(const Loaded& loaded, int64_t at) const {
    if (out) *reinterpret_cast<Pack<T, kPack>*>(out + at) = loaded.in[0];
  }
};

// Channels-last: a thread keeps the values of a pack of channels and walks down the rows. kSums: of
// Pass.
template <typename T, int kPack, typename F, int kSums>
__global__ void pass_rows(ColumnGrid grid, Pass<T, kPack, F> pass, float* parts,
                          unsigned* counters) {
  const int64_t group = blockIdx.z, values_at = group * grid.columns;
  const int64_t start = group * grid.rows * grid.columns;
  const int64_t first = first_column<kPack>(grid);
  float value[kPack][F::kValues];
  if (first < grid.columns) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
#pragma unroll
      for (int i = 0; i < F::kValues; ++i) value[k][i] = pass.value[i].at(values_at + first + k);
    }
  }
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t column,
                                    float(&sums)[kSums][kPack]) {
    typename Pass<T, kPack, F>::Loaded loaded[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      loaded[r] = pass.load(start + (rows.first + r * rows.step) * grid.columns + column);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float terms[kSums];
        pass.apply(loaded[r], k, value[k], terms);
#pragma unroll
        for (int s = 0; s < F::kSums; ++s) sums[s][k] += terms[s];
      }
      pass.store(loaded[r], start + (rows.first + r * rows.step) * grid.columns + column);
    }
  };
  if constexpr (F::kSums == 0) {
    over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t column) {
      float none[kSums][kPack];
      visit.template operator()<kRows>(rows, column, none);
    });
  } else {
    const auto finish = [&](int64_t c, const double* totals) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) pass.sum[s].put(values_at + c, totals[s]);
    };
    sum_columns<kPack, kSums>(grid, parts + group * gridDim.x * kSums * grid.columns,
                              counters + group * gridDim.y, visit, finish);
  }
}

constexpr int kPacksAtOnce = 4;

// Row-major: runs of `row` elements belong to one channel, and a block processes adjacent packs.
template <typename T, int kPack, typename F>
__global__ void pass_planes(int64_t packs, int64_t row, int64_t channels, Pass<T, kPack, F> pass) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * 256 * kPacksAtOnce + threadIdx.x;
  typename Pass<T, kPack, F>::Loaded loaded[kPacksAtOnce];
#pragma unroll
  for (int a = 0; a < kPacksAtOnce; ++a) {
    const int64_t i = begin + a * 256;
    if (i < packs) loaded[a] = pass.load(i * kPack);
  }
#pragma unroll
  for (int a = 0; a < kPacksAtOnce; ++a) {
    const int64_t i = begin + a * 256;
    if (i >= packs) continue;
    float value[F::kValues];
#pragma unroll
    for (int v = 0; v < F::kValues; ++v) value[v] = pass.value[v].at(i * kPack / row % channels);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      float none[1];
      pass.apply(loaded[a], k, value, none);
    }
    pass.store(loaded[a], i * kPack);
  }
}

// The same with sums: the blocks of a column of the grid share a channel of `packs` packs.
template <typename T, int kPack, typename F>
__global__ void sum_planes(int64_t packs, int64_t row, Pass<T, kPack, F> pass, float* parts,
                           unsigned* counters) {
  const int64_t c = blockIdx.x, channels = gridDim.x, pieces = gridDim.y;
  float value[F::kValues], sums[F::kSums] = {};
#pragma unroll
  for (int v = 0; v < F::kValues; ++v) value[v] = pass.value[v].at(c);
  const auto position = [&](int64_t i) {
    const int64_t element = i * kPack;
    return (element / row * channels + c) * row + element % row;
  };
  for (int64_t begin = blockIdx.y * 256 * kPacksAtOnce + threadIdx.x; begin < packs;
       begin += pieces * 256 * kPacksAtOnce) {
    typename Pass<T, kPack, F>::Loaded loaded[kPacksAtOnce];
#pragma unroll
    for (int a = 0; a < kPacksAtOnce; ++a) {
      const int64_t i = begin + a * 256;
      if (i < packs) loaded[a] = pass.load(position(i));
    }
#pragma unroll
    for (int a = 0; a < kPacksAtOnce; ++a) {
      const int64_t i = begin + a * 256;
      if (i >= packs) continue;
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        float terms[F::kSums];
        pass.apply(loaded[a], k, value, terms);
#pragma unroll
        for (int s = 0; s < F::kSums; ++s) sums[s] += terms[s];
      }
      pass.store(loaded[a], position(i));
    }
  }
  double totals[F::kSums];
#pragma unroll
  for (int s = 0; s < F::kSums; ++s) totals[s] = block_all(static_cast<double>(sums[s]), Plus{});
  if (pieces > 1) {
    float* const of_channel = parts + c * pieces * F::kSums;
    if (threadIdx.x == 0) {
#pragma unroll
      for (int s = 0; s < F::kSums; ++s)
        of_channel[blockIdx.y * F::kSums + s] = static_cast<float>(totals[s]);
    }
    if (!last_of(counters + c, static_cast<int>(pieces))) return;
#pragma unroll
    for (int s = 0; s < F::kSums; ++s) {
      double part = 0;
      for (int64_t piece = threadIdx.x; piece < pieces; piece += 256)
        part += __ldcg(of_channel + piece * F::kSums + s);
      totals[s] = block_all(part, Plus{});
    }
  }
  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < F::kSums; ++s) pass.sum[s].put(c, totals[s]);
  }
}

template <typename T, int kPack, typename F>
void run(const Gpu& gpu, const ChannelView& view, const ChannelPassTensors& tensors) {
  const Pass<T, kPack, F> pass(tensors);
  if (view.inner == 1) {
    const auto kernel = pass_rows<T, kPack, F, Pass<T, kPack, F>::kSums>;
    ColumnGrid grid(view.outer, view.channels, kPack);
    if constexpr (F::kSums > 0) {
      grid = grid_of_sums(kernel, view.outer, view.channels, kPack, F::kSums);
      if (view.groups >
          1) {  // the groups share the multiprocessors, the partial sums and the counters
        const ColumnGrid all =
            grid_of_sums(kernel, view.groups * view.outer, view.channels, kPack, F::kSums);
        const auto pieces = static_cast<unsigned>(all.blocks.x / view.groups);
        grid.blocks.x = std::clamp(pieces, 1u, grid.blocks.x);
      }
    }
    grid.blocks.z = static_cast<unsigned>(view.groups);
    return launch(gpu, kernel, {grid.blocks, 256}, grid, pass, gpu.partial_sums, gpu.counters);
  }
  if constexpr (F::kSums == 0) {
    const int64_t packs = view.count() / kPack, each = 256 * kPacksAtOnce;
    launch(gpu, pass_planes<T, kPack, F>, {static_cast<unsigned>(ceil_div(packs, each)), 256},
           packs, view.inner, view.channels, pass);
  } else {
    const int64_t packs = view.each() / kPack, channels = view.channels;
    // Enough blocks for every multiprocessor, if a channel has work for them.
    const int64_t wanted =
        std::min<int64_t>(kTypicalMultiprocessors * 8 / channels, packs / (256 * kPacksAtOnce));
    const dim3 blocks(static_cast<unsigned>(channels),
                      static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, 1024)));
    launch(gpu, sum_planes<T, kPack, F>, {blocks, 256}, packs, view.inner, pass, gpu.partial_sums,
           gpu.counters);
  }
}

}  // namespace channel_pass_gpu

// F is as above: float arithmetic on float32 or 16-bit tensors.
template <typename F>
void channel_pass(Context& context, const ChannelView& view, const ChannelPassTensors& tensors) {
  if (view.count() == 0) {
    for (int i = 0; i < 2; ++i) {
      if (tensors.sum[i] && !tensors.accumulate[i]) zero(context, tensors.sum[i]);
    }
    return;
  }
  constexpr int64_t kMax = 1 << 24;  // columns: a grid has at most 65535 tiles of them
  if (view.count() == view.channels && view.channels > kMax) {
    for (int64_t first = 0; first < view.channels; first += kMax) {
      const Shape shape{std::min(kMax, view.channels - first)};
      ChannelPassTensors piece = tensors;
      for (Tensor* t : {&piece.in[0], &piece.in[1], &piece.out, &piece.value[0], &piece.value[1],
                        &piece.sum[0], &piece.sum[1]}) {
        if (*t) *t = part(*t, shape, first);
      }
      channel_pass<F>(context, {1, 1, shape[0], 1}, piece);
    }
    return;
  }
  on_real(tensors.in[0], [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      const bool packs =
          takes_packs<T>(view.inner == 1 ? view.channels : view.inner, tensors.in[0].raw(),
                         tensors.in[1].raw(), tensors.out.raw());
      packs ? channel_pass_gpu::run<T, kPackCount<T>, F>(context.gpu(), view, tensors)
            : channel_pass_gpu::run<T, 1, F>(context.gpu(), view, tensors);
    }
  });
}

}  // namespace crema
