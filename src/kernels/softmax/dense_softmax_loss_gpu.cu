#include "base/ceil_div.h"
#include "device/programmatic_launch.h"
#include "kernels/core/pack.h"
#include "kernels/core/warp.cuh"
#include "kernels/softmax/dense_softmax_loss.h"
#include "kernels/softmax/softmax_labels.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kThreads = 256;  // of a block, which has one row
constexpr int kWarps = kThreads / 32;
constexpr int kAtOnce = 10;      // outputs whose weights are loaded together
constexpr int kMaxOutputs = 60;  // a multiple of kAtOnce; a lane has two outputs
constexpr int kPack = 4;         // elements that a thread reads at a time
static_assert(DenseSoftmaxLoss::kMaxOutputs == kMaxOutputs);

template <typename T>
using Elements = Pack<T, kPack>;

template <typename T>
struct Rows {
  const T *x, *w, *b;
  int inputs, outputs;
  SoftmaxLabels<float> labels;
  float smoothing;

  // Calls use(o, pack of w at column `at`) for kAtOnce outputs from `first` on. Past the last
  // output it repeats the last one.
  template <typename Use>
  __device__ void weights_at(int at, int first, const Use& use) const {
    Elements<T> packs[kAtOnce];
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) {
      const int output = min(first + o, outputs - 1);
      packs[o] = *reinterpret_cast<const Elements<T>*>(w + output * inputs + at);
    }
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) use(o, packs[o]);
  }

  // Writes each warp's partial products for all outputs to shared memory; afterwards every thread
  // may read them.
  __device__ void multiply(int row, float (*of_warp)[kMaxOutputs]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int first = 0; first < outputs; first += kAtOnce) {
      float sums[kAtOnce] = {};
      for (int at = static_cast<int>(threadIdx.x) * kPack; at < inputs; at += kThreads * kPack) {
        const auto from = *reinterpret_cast<const Elements<T>*>(x + row * inputs + at);
        weights_at(at, first, [&](int o, const Elements<T>& weights) {
#pragma unroll
          for (int k = 0; k < kPack; ++k) sums[o] += float(from.v[k]) * float(weights.v[k]);
        });
      }
#pragma unroll
      for (int o = 0; o < kAtOnce; ++o) {
        const float sum = warp_all(sums[o], Plus{});
        if (lane == 0) of_warp[warp][first + o] = sum;
      }
    }
    __syncthreads();
  }
};

// The scores of a row, in the first warp: a lane has those of two outputs, 32 apart. Constructed
// before multiply(), so that its loads are in flight meanwhile.
struct RowScores {
  int label;
  float bias[2] = {}, score[2], largest, sum;  // sum: of exp(score - largest)

  template <typename T>
  __device__ RowScores(const Rows<T>& rows, int row) : label(rows.labels.at(row)) {
    for_outputs(rows.outputs, [&](int i, int o) {
      if (rows.b) bias[i] = rows.b[o];
    });
  }
  template <typename Body>
  __device__ static void for_outputs(int outputs, const Body& body) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = static_cast<int>(threadIdx.x) + 32 * i;
      if (threadIdx.x < 32 && o < outputs) body(i, o);
    }
  }
  __device__ void finish(int outputs, const float (*of_warp)[kMaxOutputs]) {
    score[0] = score[1] = -INFINITY;
    for_outputs(outputs, [&](int i, int o) {
      score[i] = bias[i];
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) score[i] += of_warp[warp][o];
    });
    largest = warp_all(fmaxf(score[0], score[1]), Larger{});
    sum = warp_all(expf(score[0] - largest) + expf(score[1] - largest), Plus{});
  }
  // The score of one output, in every lane.
  __device__ float of(int o) const {
    return __shfl_sync(0xffffffffu, o < 32 ? score[0] : score[1], o % 32);
  }
};

template <typename T>
__device__ float loss_of_row(const Rows<T>& rows, const RowScores& of) {
  if (of.label < 0) return of.label == SoftmaxLabels<float>::kBad ? NAN : 0.f;
  float own = of.largest - of.of(of.label);
  if (rows.smoothing > 0) {
    float below = 0;
    RowScores::for_outputs(rows.outputs, [&](int i, int) { below += of.largest - of.score[i]; });
    own = (1 - rows.smoothing) * own +
          rows.smoothing * warp_all(below, Plus{}) / static_cast<float>(rows.outputs);
  }
  return limited_loss(logf(of.sum) + own);
}

// parts: the loss of each row, in double; the last block adds them in a fixed order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    dense_softmax_forward(Rows<T> rows, LabelNote note, double normalizer, float* loss,
                          double* parts, unsigned* counter) {
  __shared__ float of_warp[kWarps][kMaxOutputs];
  const int row = static_cast<int>(blockIdx.x), count = static_cast<int>(gridDim.x);
  wait_for_earlier_kernels();
  RowScores scores(rows, row);
  rows.multiply(row, of_warp);
  if (threadIdx.x < 32) {
    scores.finish(rows.outputs, of_warp);
    const float of_row = loss_of_row(rows, scores);
    if (threadIdx.x == 0) {
      parts[row] = of_row;
      if (scores.label == SoftmaxLabels<float>::kBad) note.write(row, rows.labels.labels[row]);
    }
  }
  if (!last_of(counter, count)) return;
  double sum = 0, valid = 0;
  for (int other = static_cast<int>(threadIdx.x); other < count; other += kThreads) {
    sum += __ldcg(parts + other);
    valid += rows.labels.counted(other);
  }
  sum = block_all(sum, Plus{});
  valid = block_all(valid, Plus{});
  if (threadIdx.x == 0)
    *loss = static_cast<float>(sum / (normalizer > 0 ? normalizer : fmax(valid, 1.0)));
}

// normalizer: 0 means the number of labels that count.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    dense_softmax_gradient(Rows<T> rows, float normalizer, const float* d_loss, float relu_factor,
                           float* ds, T* dx) {
  __shared__ float of_warp[kWarps][kMaxOutputs], gradients[kMaxOutputs];
  const int row = static_cast<int>(blockIdx.x), outputs = rows.outputs;
  wait_for_earlier_kernels();
  RowScores scores(rows, row);
  const float d = *d_loss;
  float divisor = normalizer;
  if (divisor == 0) {
    float valid = 0;
    for (int other = static_cast<int>(threadIdx.x); other < static_cast<int>(gridDim.x);
         other += kThreads)
      valid += rows.labels.counted(other);
    divisor = fmaxf(block_all(valid, Plus{}), 1.f);
  }
  rows.multiply(row, of_warp);
  if (threadIdx.x < 32) {
    scores.finish(outputs, of_warp);
    const float scale = scores.label == SoftmaxLabels<float>::kBad ? NAN : d / divisor;
    const float everywhere = rows.smoothing / static_cast<float>(outputs);
    const bool counts = scores.label != SoftmaxLabels<float>::kIgnored;
    // Zeros past the last output, up to the next multiple of kAtOnce, which the loop below reads.
    RowScores::for_outputs(kMaxOutputs, [&](int i, int o) {
      const float target = everywhere + (o == scores.label ? 1 - rows.smoothing : 0.f);
      const float gradient = scale * (expf(scores.score[i] - scores.largest) / scores.sum - target);
      const float value = counts && o < outputs ? gradient : 0.f;
      gradients[o] = value;
      if (o < outputs) ds[row * outputs + o] = value;
    });
  }
  if (!dx) return;
  __syncthreads();
  let_next_kernel_start();
  for (int at = static_cast<int>(threadIdx.x) * kPack; at < rows.inputs; at += kThreads * kPack) {
    float sums[kPack] = {};
    for (int first = 0; first < outputs; first += kAtOnce) {
      rows.weights_at(at, first, [&](int o, const Elements<T>& weights) {
        const float gradient = gradients[first + o];
#pragma unroll
        for (int k = 0; k < kPack; ++k) sums[k] += gradient * float(weights.v[k]);
      });
    }
    if (relu_factor != 0) {
      const auto x = *reinterpret_cast<const Elements<T>*>(rows.x + row * rows.inputs + at);
#pragma unroll
      for (int k = 0; k < kPack; ++k) sums[k] = float(x.v[k]) > 0 ? sums[k] * relu_factor : 0.f;
    }
    Elements<T> to;
#pragma unroll
    for (int k = 0; k < kPack; ++k) to.v[k] = sums[k];
    *reinterpret_cast<Elements<T>*>(dx + row * rows.inputs + at) = to;
  }
}

template <typename T>
struct ParameterGradient {
  const T* x;
  const float* ds;
  float *dw, *db;
  int rows, inputs, outputs;
  bool accumulate_w, accumulate_b;
};

// A block has kColumns inputs and kAtOnce outputs; each of its warps has some of the rows.
constexpr int kLanes = 8, kColumns = kLanes * kPack;
constexpr int kSumThreads = 256, kSumWarps = kSumThreads / 32, kRowsAtOnce = kSumThreads / kLanes;

template <typename T>
__global__ void __launch_bounds__(kSumThreads) dense_softmax_parameters(ParameterGradient<T> g) {
  __shared__ float gradients[kRowsAtOnce * 2][kAtOnce];
  __shared__ float of_warp[kSumWarps][kAtOnce][kColumns];
  constexpr int kTile = kRowsAtOnce * 2;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, down = thread / kLanes;
  const int at = static_cast<int>(blockIdx.x) * kColumns + lane * kPack;
  const int first = static_cast<int>(blockIdx.y) * kAtOnce;
  const bool inside = at < g.inputs;
  float sums[kAtOnce][kPack] = {}, bias[2] = {};
  wait_for_earlier_kernels();
  for (int tile = 0; tile < g.rows; tile += kTile) {
    Elements<T> from[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile + half * kRowsAtOnce + down;
      from[half] = *reinterpret_cast<const Elements<T>*>(g.x + min(row, g.rows - 1) * g.inputs +
                                                         (inside ? at : 0));
    }
    __syncthreads();
    for (int i = thread; i < kTile * kAtOnce; i += kSumThreads) {
      const int row = tile + i / kAtOnce, o = first + i % kAtOnce;
      gradients[i / kAtOnce][i % kAtOnce] =
          row < g.rows && o < g.outputs ? g.ds[row * g.outputs + o] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int o = 0; o < kAtOnce; ++o) {
        const float gradient = gradients[half * kRowsAtOnce + down][o];
#pragma unroll
        for (int k = 0; k < kPack; ++k) sums[o][k] += gradient * float(from[half].v[k]);
      }
    }
    // Each warp computes one or two of the biases.
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = thread / 32 + i * kSumWarps;
      if (o >= kAtOnce) continue;
      for (int row = thread % 32; row < kTile; row += 32) bias[i] += gradients[row][o];
    }
  }
#pragma unroll
  for (int o = 0; o < kAtOnce; ++o) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      float sum = sums[o][k];
      sum += __shfl_xor_sync(0xffffffffu, sum, kLanes);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2 * kLanes);
      if (thread % 32 < kLanes) of_warp[thread / 32][o][lane * kPack + k] = sum;
    }
  }
  __syncthreads();
  for (int i = thread; g.dw && i < kAtOnce * kColumns; i += kSumThreads) {
    const int o = first + i / kColumns,
              column = static_cast<int>(blockIdx.x) * kColumns + i % kColumns;
    if (o >= g.outputs || column >= g.inputs) continue;
    float* const to = g.dw + o * g.inputs + column;
    float sum = g.accumulate_w ? *to : 0.f;
#pragma unroll
    for (int warp = 0; warp < kSumWarps; ++warp) sum += of_warp[warp][i / kColumns][i % kColumns];
    *to = sum;
  }
  if (!g.db || blockIdx.x != 0) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int slot = thread / 32 + i * kSumWarps, o = first + slot;
    const float sum = warp_all(bias[i], Plus{});
    if (slot >= kAtOnce || o >= g.outputs || thread % 32 != 0) continue;
    g.db[o] = g.accumulate_b ? g.db[o] + sum : sum;
  }
}

template <typename T>
Rows<T> rows_of(const DenseSoftmaxLoss& c, const Tensor& x, const Tensor& w, const Tensor& b,
                const Tensor& labels) {
  return {x.data<T>(),
          w.data<T>(),
          b.data<T>(),
          static_cast<int>(c.inputs),
          static_cast<int>(c.outputs),
          SoftmaxLabels<float>(c.loss, labels),
          c.loss.smoothing};
}

// Dispatches float32 and 16-bit dtypes.
template <typename Body>
void on_stored(const Tensor& x, const Body& body) {
  on_real(x, [&]<typename T>() {
    if constexpr (std::is_same_v<Compute<T>, float>) body.template operator()<T>();
  });
}

Refusal dense_loss_gpu(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                       const Tensor& w, const Tensor& b, const Tensor& labels, const Tensor& loss,
                       const Tensor& note) {
  const Gpu& gpu = context.gpu();
  on_stored(x, [&]<typename T>() {
    const LabelNote where{note.data<int32_t>(), c.outputs, 1, c.loss.pass, c.loss.live_pass};
    launch_programmatic(gpu, dense_softmax_forward<T>, {static_cast<unsigned>(c.rows), kThreads},
                        rows_of<T>(c, x, w, b, labels), where,
                        c.loss.divide_by_valid ? 0.0 : c.loss.normalizer, loss.data<float>(),
                        reinterpret_cast<double*>(gpu.partial_sums), gpu.counters);
  });
  return nullptr;
}

Refusal dense_loss_gradient_gpu(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                const Tensor& w, const Tensor& b, const Tensor& labels,
                                const Tensor& d_loss, const Tensor& ds, const Tensor& dx) {
  on_stored(x, [&]<typename T>() {
    const float divisor = c.loss.divide_by_valid ? 0.f : static_cast<float>(c.loss.normalizer);
    launch_programmatic(context.gpu(), dense_softmax_gradient<T>,
                        {static_cast<unsigned>(c.rows), kThreads}, rows_of<T>(c, x, w, b, labels),
                        divisor, d_loss.data<float>(), c.relu_factor, ds.data<float>(),
                        dx.data<T>());
  });
  return nullptr;
}

Refusal dense_loss_parameters_gpu(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                  const Tensor& ds, const Tensor& dw, const Tensor& db,
                                  bool accumulate_w, bool accumulate_b) {
  on_stored(x, [&]<typename T>() {
    const dim3 blocks(static_cast<unsigned>(ceil_div(c.inputs, kColumns)),
                      static_cast<unsigned>(ceil_div(c.outputs, kAtOnce)));
    launch_programmatic(
        context.gpu(), dense_softmax_parameters<T>, {blocks, kSumThreads},
        ParameterGradient<T>{x.data<T>(), ds.data<float>(), dw.data<float>(), db.data<float>(),
                             static_cast<int>(c.rows), static_cast<int>(c.inputs),
                             static_cast<int>(c.outputs), accumulate_w, accumulate_b});
  });
  return nullptr;
}

REGISTER_KERNEL(dense_softmax_loss_kernels, "cuda", RunsOn::gpu, 0, dense_loss_gpu);
REGISTER_KERNEL(dense_softmax_loss_gradient_kernels, "cuda", RunsOn::gpu, 0,
                dense_loss_gradient_gpu);
REGISTER_KERNEL(dense_softmax_loss_parameters_kernels, "cuda", RunsOn::gpu, 0,
                dense_loss_parameters_gpu);

}  // namespace
}  // namespace crema
