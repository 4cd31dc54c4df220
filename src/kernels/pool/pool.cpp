// Pooling on the CPU: max and average, as sums and maxima over lists of taps, vectorized over
// channels. NCHW tensors are processed one vector of planes at a time, transposed into a small
// channels-last tile. The reference implementation computes the other cases.
#include "kernels/pool/pool.h"

#include <cfloat>

#include "base/ceil_div.h"
#include "kernels/core/threads.h"
#include "kernels/pointwise/channel_vector.h"
#include "kernels/pool/pool_kernels.h"
#include "kernels/pool/pool_taps.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kSmall = 1 << 14;  // fewer elements are not worth a second thread

// Calls body(first channel) for blocks of kBlock vectors. The last block overlaps its neighbor,
// which is harmless because each output element is overwritten, never accumulated.
template <typename T, typename Body>
inline void over_channels(int64_t channels, const Body& body) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) body.template operator()<4>(c);
  if (c + 2 * lanes <= channels) {
    body.template operator()<2>(c);
    c += 2 * lanes;
  }
  if (c + lanes <= channels) {
    body.template operator()<1>(c);
    c += lanes;
  }
  if (c < channels) body.template operator()<1>(channels - lanes);
}

// The three reductions over the taps of a destination pixel. x, y and index point to the first
// channel: x of pixel 0 of the image, y of the destination pixel, the input index like x and the
// output index like y.
enum class Indices { none, all, of_positive };
template <typename T, typename Index, Indices kIndices>
struct KeepLargest {
  static constexpr bool kBackward = false;
  static void pixel(const typename Taps<T>::List& list, int64_t channels, const T* x, const Index*,
                    T* y, Index* index) {
    over_channels<T>(channels, [&]<int kBlock>(int64_t c) {
      Vector<T> largest[kBlock];
      Mask<T> cells[kBlock];
      for (int v = 0; v < kBlock; ++v) largest[v] = Vector<T>{} - static_cast<T>(FLT_MAX);
      for (int v = 0; v < kBlock; ++v) cells[v] = Mask<T>{} - 1;
      for (int t = 0; t < list.count; ++t) {
        const T* from = x + (list.base + list.taps[t].at) * channels + c;
        const Mask<T> cell = Mask<T>{} + list.taps[t].cell;
        for (int v = 0; v < kBlock; ++v) {
          const Vector<T> value = load<Vector<T>>(from + v * kLanes<T>);
          const Mask<T> larger = value > largest[v];
          largest[v] = larger ? value : largest[v];
          if (kIndices != Indices::none) cells[v] = larger ? cell : cells[v];
        }
      }
      for (int v = 0; v < kBlock; ++v) {
        store(largest[v], y + c + v * kLanes<T>);
        if (kIndices == Indices::of_positive)
          cells[v] = largest[v] > Vector<T>{} ? cells[v] : Mask<T>{} - 1;
        if (kIndices != Indices::none)
          store(resize<Index, typename MaskOf<T>::type, kLanes<T>>(cells[v]),
                index + c + v * kLanes<T>);
      }
    });
  }
};

template <typename T, typename Index>
struct AddUp {
  static void pixel(const typename Taps<T>::List& list, int64_t channels, const T* x, const Index*,
                    T* y, Index*) {
    over_channels<T>(channels, [&]<int kBlock>(int64_t c) {
      Vector<T> sum[kBlock];
      for (int v = 0; v < kBlock; ++v) sum[v] = Vector<T>{};
      for (int t = 0; t < list.count; ++t) {
        const T* from = x + (list.base + list.taps[t].at) * channels + c;
        for (int v = 0; v < kBlock; ++v)
          sum[v] += load<Vector<T>>(from + v * kLanes<T>) * list.taps[t].weight;
      }
      for (int v = 0; v < kBlock; ++v) store(sum[v], y + c + v * kLanes<T>);
    });
  }
};
template <typename T, typename Index>
struct Mean : AddUp<T, Index> {
  static constexpr bool kBackward = false;
};
template <typename T, typename Index>
struct MeanBackward : AddUp<T, Index> {
  static constexpr bool kBackward = true;
};

template <typename T, typename Index>
struct MaxBackward {
  static constexpr bool kBackward = true;
  static void pixel(const typename Taps<T>::List& list, int64_t channels, const T* dy,
                    const Index* index, T* dx, Index*) {
    over_channels<T>(channels, [&]<int kBlock>(int64_t c) {
      Vector<T> sum[kBlock];
      for (int v = 0; v < kBlock; ++v) sum[v] = Vector<T>{};
      for (int t = 0; t < list.count; ++t) {
        const int64_t at = (list.base + list.taps[t].at) * channels + c;
        for (int v = 0; v < kBlock; ++v) {
          sum[v] +=
              where_equal(index + at + v * kLanes<T>, list.taps[t].cell, dy + at + v * kLanes<T>);
        }
      }
      for (int v = 0; v < kBlock; ++v) store(sum[v], dx + c + v * kLanes<T>);
    });
  }
};

template <typename Work, typename T, typename Index>
void run_channels_last(const PoolGeometry& g, const T* x, const Index* index, T* y,
                       Index* index_out) {
  const int64_t* source = Work::kBackward ? g.out : g.in;
  const int64_t* destination = Work::kBackward ? g.in : g.out;
  const int64_t image = source[0] * source[1] * source[2] * g.channels,
                row_count = destination[2] * g.channels;
  const int64_t rows_per_image = destination[0] * destination[1], rows = g.images * rows_per_image;
  const Taps<T> taps(g, Work::kBackward);
#pragma omp parallel for schedule(static) if (rows * row_count > kSmall)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t n = row / rows_per_image, d = row % rows_per_image / destination[1],
                  h = row % destination[1];
    for (int64_t w = 0; w < destination[2]; ++w) {
      const int64_t to = row * row_count + w * g.channels;
      Work::pixel(taps.of(d, h, w), g.channels, x + n * image, index ? index + n * image : nullptr,
                  y + to, index_out ? index_out + to : nullptr);
    }
  }
}

// Transposes kLanes planes of `count` elements into a tile [count][kLanes]; only `planes` of them
// exist.
template <typename T, typename V>
void planes_to_tile(const V* from, int64_t count, int64_t planes, V* tile) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t i = 0;
  if (sizeof(V) == sizeof(T) && planes >= lanes) {
    for (; i + lanes <= count; i += lanes) {
      Vector<T> block[lanes];
      for (int64_t p = 0; p < lanes; ++p) block[p] = load<Vector<T>>(from + p * count + i);
      transpose<T>(block);
      for (int64_t k = 0; k < lanes; ++k) store(block[k], tile + (i + k) * lanes);
    }
  }
  for (; i < count; ++i) {
    for (int64_t p = 0; p < lanes; ++p)
      tile[i * lanes + p] = p < planes ? from[p * count + i] : V(0);
  }
}

template <typename T, typename V>
void tile_to_planes(const V* tile, int64_t count, int64_t planes, V* to) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t i = 0;
  if (sizeof(V) == sizeof(T) && planes >= lanes) {
    for (; i + lanes <= count; i += lanes) {
      Vector<T> block[lanes];
      for (int64_t k = 0; k < lanes; ++k) block[k] = load<Vector<T>>(tile + (i + k) * lanes);
      transpose<T>(block);
      for (int64_t p = 0; p < lanes; ++p) store(block[p], to + p * count + i);
    }
  }
  for (int64_t p = 0; p < std::min(planes, lanes); ++p) {
    for (int64_t k = i; k < count; ++k) to[p * count + k] = tile[k * lanes + p];
  }
}

template <typename Work, typename T, typename Index>
void run_plain(const PoolGeometry& g, const T* x, const Index* index, T* y, Index* index_out) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t* source = Work::kBackward ? g.out : g.in;
  const int64_t* destination = Work::kBackward ? g.in : g.out;
  const int64_t from_count = source[0] * source[1] * source[2],
                to_count = destination[0] * destination[1] * destination[2];
  const int64_t planes = g.images * g.channels, blocks = ceil_div(planes, lanes);
  const Taps<T> taps(g, Work::kBackward);
  RegionError error;
#pragma omp parallel if (planes * from_count > kSmall)
  {
    std::vector<T> x_tile, y_tile;
    std::vector<Index> index_tile, index_out_tile;
    error.run([&] {
      x_tile.resize(from_count * lanes);
      index_tile.resize(index ? from_count * lanes : 0);
      index_out_tile.resize(index_out ? to_count * lanes : 0);
      y_tile.resize(to_count * lanes);
    });
#pragma omp for schedule(static)
    for (int64_t block = 0; block < blocks; ++block) {
      if (y_tile.empty()) continue;
      const int64_t first = block * lanes, present = planes - first;
      planes_to_tile<T>(x + first * from_count, from_count, present, x_tile.data());
      if (index)
        planes_to_tile<T>(index + first * from_count, from_count, present, index_tile.data());
      int64_t i = 0;
      for (int64_t d = 0; d < destination[0]; ++d) {
        for (int64_t h = 0; h < destination[1]; ++h) {
          for (int64_t w = 0; w < destination[2]; ++w, i += lanes) {
            Work::pixel(taps.of(d, h, w), lanes, x_tile.data(), index_tile.data(),
                        y_tile.data() + i, index_out ? index_out_tile.data() + i : nullptr);
          }
        }
      }
      tile_to_planes<T>(y_tile.data(), to_count, present, y + first * to_count);
      if (index_out)
        tile_to_planes<T>(index_out_tile.data(), to_count, present, index_out + first * to_count);
    }
  }
  error.rethrow();
}

// Max pooling's gradient in NCHW order needs no tiles: it scatters into one plane at a time.
template <typename T, typename Index>
void scatter_to_argmax(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  const int64_t in_plane = g.in[0] * g.in[1] * g.in[2], out_plane = g.out[0] * g.out[1] * g.out[2];
  std::vector<int64_t> position(g.cells());  // of each cell, from its window's first cell
  for (int64_t cell = 0; cell < g.cells(); ++cell) {
    const int64_t row = cell / g.kernel[2], w = cell % g.kernel[2];
    position[cell] = (row / g.kernel[1] * g.in[1] + row % g.kernel[1]) * g.in[2] + w;
  }
#pragma omp parallel for schedule(static) if (g.images * g.channels * in_plane > kSmall)
  for (int64_t plane = 0; plane < g.images * g.channels; ++plane) {
    T* to = dx + plane * in_plane;
    std::fill(to, to + in_plane, T(0));
    int64_t at = plane * out_plane;
    for (int64_t od = 0; od < g.out[0]; ++od) {
      for (int64_t oh = 0; oh < g.out[1]; ++oh) {
        int64_t corner =
            ((od * g.stride[0] - g.pad[0]) * g.in[1] + oh * g.stride[1] - g.pad[1]) * g.in[2] -
            g.pad[2];
        for (int64_t ow = 0; ow < g.out[2]; ++ow, ++at, corner += g.stride[2]) {
          if (index[at] != static_cast<Index>(-1)) to[corner + position[index[at]]] += dy[at];
        }
      }
    }
  }
}

constexpr Refusal kNotVectorized = "for max and average without a mask, and enough channels";

// True when the loops in this file support the case: they need a full vector of channels or of
// planes.
bool supports(const PoolWindow& window, const PoolGeometry& g) {
  const bool method = window.method == PoolMethod::max || window.method == PoolMethod::average;
  return method && (g.channels_last ? g.channels : g.images * g.channels) >= kLanes<float>;
}

template <template <typename, typename> typename Work, typename T, typename Index>
void run(const PoolGeometry& g, const T* x, const Index* index, T* y, Index* index_out) {
  g.channels_last ? run_channels_last<Work<T, Index>>(g, x, index, y, index_out)
                  : run_plain<Work<T, Index>>(g, x, index, y, index_out);
}

template <typename T, typename Index>
using LargestAndIndex = KeepLargest<T, Index, Indices::all>;
template <typename T, typename Index>
using LargestAndPositiveIndex = KeepLargest<T, Index, Indices::of_positive>;
template <typename T, typename Index>
using LargestOnly = KeepLargest<T, Index, Indices::none>;

// Calls body<T, Index>() for the tensor's dtype and the window's index dtype.
template <typename Body>
void with_types(const Tensor& tensor, const PoolWindow& window, const Body& body) {
  on(tensor, [&]<typename T>() {
    window.index_dtype() == DType::u8 ? body.template operator()<T, uint8_t>()
                                      : body.template operator()<T, int32_t>();
  });
}

Refusal pool_forward_vectorized(Context&, const PoolWindow& window, const PassRandom& /*random*/,
                                const Tensor& x, const Tensor& y, const Tensor& index,
                                const Tensor& mask) {
  const PoolGeometry g(window, x, y);
  if (mask || !supports(window, g)) return kNotVectorized;
  with_types(x, window, [&]<typename T, typename Index>() {
    const Index* none = nullptr;
    if (window.method == PoolMethod::average) {
      run<Mean>(g, x.data<T>(), none, y.data<T>(), static_cast<Index*>(nullptr));
    } else if (index && window.only_positive()) {
      run<LargestAndPositiveIndex>(g, x.data<T>(), none, y.data<T>(), index.data<Index>());
    } else if (index) {
      run<LargestAndIndex>(g, x.data<T>(), none, y.data<T>(), index.data<Index>());
    } else {
      run<LargestOnly>(g, x.data<T>(), none, y.data<T>(), static_cast<Index*>(nullptr));
    }
    if (!window.relu_after) return;
    const int64_t count = y.count();
    T* const out = y.data<T>();
#pragma omp parallel for simd schedule(static) if (count > kSmall)
    for (int64_t i = 0; i < count; ++i) out[i] = out[i] <= 0 ? T(0) : out[i];
  });
  return nullptr;
}

Refusal pool_backward_vectorized(Context&, const PoolWindow& window, const Tensor& /*x*/,
                                 const Tensor& index, const Tensor& dy, const Tensor& dx) {
  const PoolGeometry g(window, dx, dy);
  if (!supports(window, g)) return kNotVectorized;
  with_types(dy, window, [&]<typename T, typename Index>() {
    Index* none = nullptr;
    if (window.method == PoolMethod::average) {
      run<MeanBackward>(g, dy.data<T>(), static_cast<const Index*>(nullptr), dx.data<T>(), none);
    } else if (g.channels_last) {
      run_channels_last<MaxBackward<T, Index>>(g, dy.data<T>(), index.data<const Index>(),
                                               dx.data<T>(), none);
    } else {
      scatter_to_argmax(g, dy.data<T>(), index.data<Index>(), dx.data<T>());
    }
  });
  return nullptr;
}

REGISTER_KERNEL(pool_forward_kernels, "vectorized", RunsOn::cpu, 10, pool_forward_vectorized);
REGISTER_KERNEL(pool_backward_kernels, "vectorized", RunsOn::cpu, 10, pool_backward_vectorized);

}  // namespace

constinit decltype(pool_forward_kernels) pool_forward_kernels("pooling");
constinit decltype(pool_backward_kernels) pool_backward_kernels("the gradient of pooling");

void pool_forward(Context& context, const PoolWindow& window, const PassRandom& random,
                  const Tensor& x, const Tensor& y, const Tensor& index, const Tensor& mask) {
  pool_forward_kernels.run(context, window, random, x, y, index, mask);
}

void pool_backward(Context& context, const PoolWindow& window, const Tensor& x, const Tensor& index,
                   const Tensor& dy, const Tensor& dx) {
  pool_backward_kernels.run(context, window, x, index, dy, dx);
}

}  // namespace crema
