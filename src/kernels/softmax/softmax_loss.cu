// Softmax's cross-entropy for every device: one index a place; on the GPU also a warp or a block
// where the classes lie next to each other and are many, and the total comes with the places.
#include "kernels/softmax/softmax_loss.h"

#include "device/parallel.h"
#include "kernels/core/labels.h"
#include "kernels/softmax/softmax_labels.h"
#include "kernels/softmax/softmax_reference.h"
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

// What is known about a place once its largest x and its sums are: shared by all bodies here. T:
// what everything but x is stored in.
template <typename T>
struct PlaceWriter {
  SoftmaxLabels<T> labels;
  T smoothing;
  int64_t count;  // places
  T* places;
  LabelNote note;

  // x: of class 0, classes are `inner` apart. Returns the loss.
  template <typename X>
  CREMA_HD T write(int64_t place, const X* x, int64_t inner, const SoftmaxSums<T>& of) const {
    const int label = labels.at(place);
    T loss = 0;
    if (label >= 0) {
      T own = of.largest - x[label * inner];
      if (smoothing > 0) own = (1 - smoothing) * own + smoothing * of.below / labels.classes;
      loss = labels.weight(place, label) * limited_loss(log(of.sum) + own);
    } else if (label == SoftmaxLabels<T>::kBad) {
      loss = not_a_number<T>();
      note.write(place, labels.labels[place]);
    }
    places[place] = of.largest;
    places[count + place] = 1 / of.sum;
    places[2 * count + place] = loss;
    return loss;
  }
};

template <typename T>
PlaceWriter<T> writer_of(const SoftmaxLossCase& c, const Tensor& labels,
                         const SoftmaxLossSaved& saved) {
  return {SoftmaxLabels<T>(c, labels),
          static_cast<T>(c.smoothing),
          c.view.places(),
          saved.places.data<T>(),
          {saved.note.data<int32_t>(), c.view.classes, c.places_each(), c.pass, c.live_pass}};
}

template <typename T>
struct LossPlaces {
  using C = Compute<T>;
  SoftmaxView view;
  PlaceWriter<C> writer;
  const T* x;
  C* probability;
  CREMA_HD void operator()(int64_t place) const { take(place); }
  // Returns the loss.
  CREMA_HD C take(int64_t place) const {
    const int64_t start = place / view.inner * view.classes * view.inner + place % view.inner;
    const T* from = x + start;
    const auto at = [&](int64_t k) { return static_cast<C>(from[k * view.inner]); };
    SoftmaxSums<C> sums;
    sums.add(view.classes, at);
    if (probability) {
      over_classes<C>(view.classes, at, [&](int64_t k, C value) {
        probability[start + k * view.inner] = exp_of(value - sums.largest) / sums.sum;
      });
    }
    return writer.write(place, from, view.inner, sums);
  }
};

// The gradient of a place, by x: exp(x - largest) * share - everywhere, and less `own` at the
// label.
template <typename C>
struct PlaceSlope {
  int label;
  C largest, share, everywhere, own;
  CREMA_HD C of(C x, int64_t k) const {
    // NaN for a bad label; one result for all outcomes: with a store in each branch ptxas 13.0
    // (sm_90) drops the one of the good labels.
    const C slope = exp_of(x - largest) * share - everywhere - (k == label ? own : C(0));
    return label == ClassLabels<C>::kIgnored ? C(0) : slope;
  }
};

template <typename T>
struct LossGradient {
  using C = Compute<T>;
  SoftmaxView view;
  SoftmaxLabels<C> labels;
  C smoothing;
  const T* x;
  const C *places, *normalizer, *d_loss;
  T* dx;
  CREMA_HD PlaceSlope<C> slope(int64_t place) const {
    const int label = labels.at(place);
    C scale = label == SoftmaxLabels<C>::kBad ? not_a_number<C>() : C(0);
    if (label >= 0) scale = labels.weight(place, label) * d_loss[0] / normalizer[0];
    return {label, places[place], scale * places[view.places() + place],
            scale * smoothing / view.classes, scale * (1 - smoothing)};
  }
  CREMA_HD void operator()(int64_t place) const {
    const int64_t start = place / view.inner * view.classes * view.inner + place % view.inner;
    const PlaceSlope<C> slope = this->slope(place);
    over_classes<C>(
        view.classes, [&](int64_t k) { return static_cast<C>(x[start + k * view.inner]); },
        [&](int64_t k, C value) { dx[start + k * view.inner] = slope.of(value, k); });
  }
};

#ifdef __CUDACC__

// The last block to come makes the loss and the normalizer of what all have summed.
template <typename C>
struct LossEnd {
  double fixed;  // the normalizer, or 0 for the number of places that count
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
    *normalizer = static_cast<C>(divisor);
    *loss = static_cast<C>(sum / divisor);
  }
};

constexpr int kBlocksEach = 5;  // of loss_forward, that run at once on a multiprocessor

template <typename T, SoftmaxWay kWay>
__global__ void __launch_bounds__(256, kBlocksEach)
    loss_forward(LossPlaces<T> body, LossEnd<Compute<T>> end) {
  using C = Compute<T>;
  using Threads = PlaceThreads<kWay>;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const tile = reinterpret_cast<T*>(memory);
  const int64_t classes = body.view.classes, places = body.view.places();
  double sum = 0, valid = 0;
  for (int64_t first = blockIdx.x * int64_t{Threads::kPlaces}; first < places;
       first += gridDim.x * int64_t{Threads::kPlaces}) {
    if constexpr (kWay == SoftmaxWay::tiles) {
      __syncthreads();
      copy_tile(tile, body.x + first * classes,
                static_cast<int>(min(places - first, int64_t{kTilePlaces}) * classes));
      __syncthreads();
    }
    const int64_t place = first + Threads::place();
    if (place >= places) continue;
    C loss = 0;
    if constexpr (kWay == SoftmaxWay::places) {
      loss = body.take(place);
    } else {
      SoftmaxSums<C> sums;
      const T* row = body.x + place * classes;
      const int lane = Threads::lane();
      if constexpr (kWay == SoftmaxWay::tiles) {
        row = tile + threadIdx.x * classes;
        const TileOrder order(classes);
        sums.add(classes, [&](int64_t k) { return static_cast<C>(row[order(k)]); });
      } else {
        sums.add((classes - lane + Threads::kCount - 1) / Threads::kCount,
                 [&](int64_t k) { return static_cast<C>(row[lane + k * Threads::kCount]); });
        combine_sums<kWay>(sums);
      }
      for (int64_t k = lane; body.probability && k < classes; k += Threads::kCount) {
        body.probability[place * classes + k] =
            exp_of(static_cast<C>(row[k]) - sums.largest) / sums.sum;
      }
      if (lane == 0) loss = body.writer.write(place, row, 1, sums);
    }
    if (Threads::lane() == 0) {
      sum += loss;
      valid += body.writer.labels.counted(place);
    }
  }
  end(sum, valid);
}

template <typename T, SoftmaxWay kWay>
__global__ void __launch_bounds__(256) loss_gradient(LossGradient<T> body) {
  using C = Compute<T>;
  if constexpr (kWay == SoftmaxWay::places) {
    const int64_t place = blockIdx.x * int64_t{kTilePlaces} + threadIdx.x;
    if (place < body.view.places()) body(place);
  } else {
    rewrite_places<kWay>(body.view, body.x, body.dx,
                         [&](int64_t place, const PlaceRow<T, kWay>& row) {
                           const PlaceSlope<C> slope = body.slope(place);
                           over_classes<C>(
                               row.count(), [&](int64_t k) { return static_cast<C>(row[k]); },
                               [&](int64_t k, C value) { row.put(k, slope.of(value, row.of(k))); });
                         });
  }
}

#endif

}  // namespace

void softmax_loss_places_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                               const Tensor& labels, const SoftmaxLossSaved& saved,
                               const Tensor& probability) {
  on(x, [&]<typename T>() {
    const LossPlaces<T> body{c.view, writer_of<T>(c, labels, saved), x.data<T>(),
                             probability.data<T>()};
    parallel_for(context, c.view.places(), body, 64);
  });
}

void softmax_loss_forward_gpu(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                              const Tensor& labels, const Tensor& loss,
                              const SoftmaxLossSaved& saved, const Tensor& probability) {
#ifdef __CUDACC__
  const Gpu& gpu = context.gpu();
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const LossPlaces<T> body{c.view, writer_of<C>(c, labels, saved), x.data<T>(),
                             probability.data<C>()};
    const LossEnd<C> end{c.divide_by_valid ? 0.0 : c.normalizer, saved.normalizer.data<C>(),
                         loss.data<C>(), reinterpret_cast<double*>(gpu.parts), gpu.counters};
    with_softmax_way<T>(c.view, 1, 132 * kBlocksEach,
                        [&]<SoftmaxWay kWay>(const LaunchShape& shape) {
                          launch(gpu, loss_forward<T, kWay>, shape, body, end);
                        });
  });
#else
  (void)context, (void)c, (void)x, (void)labels, (void)loss, (void)saved, (void)probability;
#endif
}

void softmax_loss_backward_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& labels, const SoftmaxLossSaved& saved,
                                 const Tensor& d_loss, const Tensor& dx) {
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const LossGradient<T> body{c.view,
                               SoftmaxLabels<C>(c, labels),
                               static_cast<C>(c.smoothing),
                               x.data<T>(),
                               saved.places.data<C>(),
                               saved.normalizer.data<C>(),
                               d_loss.data<C>(),
                               dx.data<T>()};
#ifdef __CUDACC__
    if (context.device() == Device::gpu) {
      if (c.view.places() == 0) return;
      return with_softmax_way<T>(c.view, 1, INT32_MAX,
                                 [&]<SoftmaxWay kWay>(const LaunchShape& shape) {
                                   launch(context.gpu(), loss_gradient<T, kWay>, shape, body);
                                 });
    }
#endif
    parallel_for(context, c.view.places(), body, 64);
  });
}

}  // namespace crema
