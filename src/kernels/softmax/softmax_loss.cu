// Softmax cross-entropy on every device: one index per position; on the GPU also one warp or block
// per position where the classes are contiguous and many, and the same kernel computes the total.
#include "kernels/softmax/softmax_loss.h"

#include "device/parallel.h"
#include "kernels/labels/labels.h"
#include "kernels/softmax/softmax_kernels.h"
#include "kernels/softmax/softmax_labels.h"
#include "kernels/softmax/softmax_sums.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/softmax/softmax_tile.cuh"
#endif

namespace crema {
namespace {

template <typename T>
CREMA_HD T not_a_number() {
  return static_cast<T>(NAN);
}

// Finishes a position once its largest x and its sums are known; shared by all implementations
// here. T: the type of everything but x.
template <typename T>
struct PositionWriter {
  SoftmaxLabels<T> labels;
  T smoothing;
  int64_t count;  // positions
  T* positions;
  LabelNote note;

  // x: points to class 0, and classes are `inner` apart. Returns the loss.
  template <typename X>
  CREMA_HD T write(int64_t position, const X* x, int64_t inner, const SoftmaxSums<T>& of) const {
    const int label = labels.at(position);
    T loss = 0;
    if (label >= 0) {
      T own = of.largest - x[label * inner];
      if (smoothing > 0) own = (1 - smoothing) * own + smoothing * of.below / labels.classes;
      loss = labels.weight(position, label) * limited_loss(log(of.sum) + own);
    } else if (label == SoftmaxLabels<T>::kBad) {
      loss = not_a_number<T>();
      note.write(position, labels.labels[position]);
    }
    positions[position] = of.largest;
    positions[count + position] = 1 / of.sum;
    positions[2 * count + position] = loss;
    return loss;
  }
};

template <typename T>
PositionWriter<T> writer_of(const SoftmaxLossCase& c, const Tensor& labels,
                            const SoftmaxLossSaved& saved) {
  return {SoftmaxLabels<T>(c, labels),
          static_cast<T>(c.smoothing),
          c.view.positions(),
          saved.positions.data<T>(),
          {saved.note.data<int32_t>(), c.view.classes, c.positions_each(), c.pass, c.live_pass}};
}

template <typename T>
struct LossPositions {
  using C = Compute<T>;
  SoftmaxView view;
  PositionWriter<C> writer;
  const T* x;
  C* probability;
  CREMA_HD void operator()(int64_t position) const { take(position); }
  // Returns the loss.
  CREMA_HD C take(int64_t position) const {
    const int64_t start = position / view.inner * view.classes * view.inner + position % view.inner;
    const T* from = x + start;
    const auto at = [&](int64_t k) { return static_cast<C>(from[k * view.inner]); };
    SoftmaxSums<C> sums;
    sums.add(view.classes, at);
    if (probability) {
      over_classes<C>(view.classes, at, [&](int64_t k, C value) {
        probability[start + k * view.inner] = exp_of(value - sums.largest) / sums.sum;
      });
    }
    return writer.write(position, from, view.inner, sums);
  }
};

// The gradient of a position as a function of x: exp(x - largest) * scale_over_sum - everywhere,
// minus `own` at the label.
template <typename C>
struct PositionGradient {
  int label;
  C largest, scale_over_sum, everywhere, own;
  CREMA_HD C of(C x, int64_t k) const {
    // NaN for an invalid label. One result for all outcomes: with a store in each branch, ptxas
    // 13.0 (sm_90) drops the store for valid labels.
    const C gradient =
        exp_of(x - largest) * scale_over_sum - everywhere - (k == label ? own : C(0));
    return label == ClassLabels<C>::kIgnored ? C(0) : gradient;
  }
};

template <typename T>
struct LossGradient {
  using C = Compute<T>;
  SoftmaxView view;
  SoftmaxLabels<C> labels;
  C smoothing;
  const T* x;
  const C *positions, *normalizer, *d_loss;
  T* dx;
  CREMA_HD PositionGradient<C> gradient(int64_t position) const {
    const int label = labels.at(position);
    C scale = label == SoftmaxLabels<C>::kBad ? not_a_number<C>() : C(0);
    if (label >= 0) scale = labels.weight(position, label) * d_loss[0] / normalizer[0];
    return {label, positions[position], scale * positions[view.positions() + position],
            scale * smoothing / view.classes, scale * (1 - smoothing)};
  }
  CREMA_HD void operator()(int64_t position) const {
    const int64_t start = position / view.inner * view.classes * view.inner + position % view.inner;
    const PositionGradient<C> gradient = this->gradient(position);
    over_classes<C>(
        view.classes, [&](int64_t k) { return static_cast<C>(x[start + k * view.inner]); },
        [&](int64_t k, C value) { dx[start + k * view.inner] = gradient.of(value, k); });
  }
};

#ifdef __CUDACC__

// The last block to finish computes the loss and the normalizer from the sums of all blocks.
template <typename C>
struct LossEnd {
  double fixed;  // the normalizer, or 0 for the number of positions that count
  C *normalizer, *loss;
  double* parts;
  unsigned* counter;
  __device__ void operator()(double sum, double valid) const {
    sum = block_all(sum, Plus{});
    valid = block_all(valid, Plus{});
    const int blocks = static_cast<int>(gridDim.x);
    if (blocks > 1) {
      if (threadIdx.x == 0) parts[blockIdx.x] = sum, parts[blocks + blockIdx.x] = valid;
      if (!last_of(counter, blocks)) return;
      sum = valid = 0;
      for (int block = static_cast<int>(threadIdx.x); block < blocks; block += 256) {
        sum += __ldcg(parts + block);
        valid += __ldcg(parts + blocks + block);
      }
      sum = block_all(sum, Plus{});
      valid = block_all(valid, Plus{});
    }
    if (threadIdx.x != 0) return;
    const double divisor = fixed > 0 ? fixed : valid < 1 ? 1 : valid;
    normalizer[0] = static_cast<C>(divisor);
    normalizer[1] = static_cast<C>(valid);
    *loss = static_cast<C>(sum / divisor);
  }
};

constexpr int kBlocksEach = 5;  // blocks of loss_forward resident on one multiprocessor

template <typename T, SoftmaxAlgorithm kWay>
__global__ void __launch_bounds__(256, kBlocksEach)
    loss_forward(LossPositions<T> body, LossEnd<Compute<T>> end) {
  using C = Compute<T>;
  using Threads = PositionThreads<kWay>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const tile = reinterpret_cast<T*>(memory);
  const int64_t classes = body.view.classes, positions = body.view.positions();
  double sum = 0, valid = 0;
  for (int64_t first = blockIdx.x * int64_t{Threads::kPositions}; first < positions;
       first += gridDim.x * int64_t{Threads::kPositions}) {
    if constexpr (kWay == SoftmaxAlgorithm::tiles) {
      __syncthreads();
      copy_tile(tile, body.x + first * classes,
                static_cast<int>(min(positions - first, int64_t{kTilePositions}) * classes));
      __syncthreads();
    }
    const int64_t position = first + Threads::position();
    if (position >= positions) continue;
    C loss = 0;
    if constexpr (kWay == SoftmaxAlgorithm::positions) {
      loss = body.take(position);
    } else {
      SoftmaxSums<C> sums;
      const T* row = body.x + position * classes;
      const int lane = Threads::lane();
      if constexpr (kWay == SoftmaxAlgorithm::tiles) {
        row = tile + threadIdx.x * classes;
        const TileOrder order(classes);
        sums.add(classes, [&](int64_t k) { return static_cast<C>(row[order(k)]); });
      } else {
        sums.add((classes - lane + Threads::kCount - 1) / Threads::kCount,
                 [&](int64_t k) { return static_cast<C>(row[lane + k * Threads::kCount]); });
        combine_sums<kWay>(sums);
      }
      for (int64_t k = lane; body.probability && k < classes; k += Threads::kCount) {
        body.probability[position * classes + k] =
            exp_of(static_cast<C>(row[k]) - sums.largest) / sums.sum;
      }
      if (lane == 0) loss = body.writer.write(position, row, 1, sums);
    }
    if (Threads::lane() == 0) {
      sum += loss;
      valid += body.writer.labels.counted(position);
    }
  }
  end(sum, valid);
}

template <typename T, SoftmaxAlgorithm kWay>
__global__ void __launch_bounds__(256) loss_gradient(LossGradient<T> body) {
  using C = Compute<T>;
  if constexpr (kWay == SoftmaxAlgorithm::positions) {
    const int64_t position = blockIdx.x * int64_t{kTilePositions} + threadIdx.x;
    if (position < body.view.positions()) body(position);
  } else {
    rewrite_positions<kWay>(
        body.view, body.x, body.dx, [&](int64_t position, const PositionRow<T, kWay>& row) {
          const PositionGradient<C> gradient = body.gradient(position);
          over_classes<C>(
              row.count(), [&](int64_t k) { return static_cast<C>(row[k]); },
              [&](int64_t k, C value) { row.put(k, gradient.of(value, row.of(k))); });
        });
  }
}

Refusal softmax_loss_forward_gpu(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& labels, const Tensor& loss,
                                 const SoftmaxLossSaved& saved, const Tensor& probability) {
  const Gpu& gpu = context.gpu();
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const LossPositions<T> body{c.view, writer_of<C>(c, labels, saved), x.data<T>(),
                                probability.data<C>()};
    const LossEnd<C> end{c.divide_by_valid ? 0.0 : c.normalizer, saved.normalizer.data<C>(),
                         loss.data<C>(), reinterpret_cast<double*>(gpu.partial_sums), gpu.counters};
    with_softmax_algorithm<T>(c.view, 1, kTypicalMultiprocessors * kBlocksEach,
                              [&]<SoftmaxAlgorithm kWay>(const LaunchShape& shape) {
                                launch(gpu, loss_forward<T, kWay>, shape, body, end);
                              });
  });
  return nullptr;
}

REGISTER_KERNEL(softmax_loss_forward_kernels, "cuda", RunsOn::gpu, 10, softmax_loss_forward_gpu);

#endif

Refusal softmax_loss_backward_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                    const Tensor& labels, const SoftmaxLossSaved& saved,
                                    const Tensor& d_loss, const Tensor& dx) {
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const LossGradient<T> body{c.view,
                               SoftmaxLabels<C>(c, labels),
                               static_cast<C>(c.smoothing),
                               x.data<T>(),
                               saved.positions.data<C>(),
                               saved.normalizer.data<C>(),
                               d_loss.data<C>(),
                               dx.data<T>()};
#ifdef __CUDACC__
    if (context.device() == Device::gpu) {
      if (c.view.positions() == 0) return;
      return with_softmax_algorithm<T>(c.view, 1, INT32_MAX,
                                       [&]<SoftmaxAlgorithm kWay>(const LaunchShape& shape) {
                                         launch(context.gpu(), loss_gradient<T, kWay>, shape, body);
                                       });
    }
#endif
    parallel_for(context, c.view.positions(), body, 64);
  });
  return nullptr;
}

REGISTER_KERNEL(softmax_loss_backward_kernels, "plain", RunsOn::both, 0,
                softmax_loss_backward_plain);

}  // namespace

void softmax_loss_positions(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                            const Tensor& labels, const SoftmaxLossSaved& saved,
                            const Tensor& probability) {
  on(x, [&]<typename T>() {
    const LossPositions<T> body{c.view, writer_of<T>(c, labels, saved), x.data<T>(),
                                probability.data<T>()};
    parallel_for(context, c.view.positions(), body, 64);
  });
}

}  // namespace crema
