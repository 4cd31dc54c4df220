// Pooling on the CPU: max and average, vectorised over channels (channels-last) or along rows (plain). Everything else, and
// tensors too narrow for vectors, goes to the plain body.
#include "kernels/pool.h"

#include <cfloat>
#include <vector>

#include "kernels/pool_geometry.h"
#include "kernels/pool_plain.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kLanes = 32;  // channels that one pass over a window keeps in registers
constexpr int64_t kSmall = 1 << 14;  // elements that are not worth a second thread

// --- channels-last: x[image][d][h][w][channel] -----------------------------------------------------------------------

// The windows of one output row, for `kCount` channels from `channel` on (0: `lanes` channels).
template <int kCount, bool kMax, bool kIndex, typename T, typename Index>
void pool_row(const PoolGeometry& g, const T* x, int64_t od, int64_t oh, int64_t channel, int lanes, T* y, Index* index) {
  const int count = kCount ? kCount : lanes;
  for (int64_t ow = 0; ow < g.out[2]; ++ow) {
    T kept[kLanes];
    int32_t cells[kLanes];
    for (int i = 0; i < count; ++i) kept[i] = kMax ? static_cast<T>(-FLT_MAX) : T(0);
    for (int i = 0; i < count; ++i) cells[i] = -1;
    for (int64_t d = g.first(0, od); d < g.last(0, od); ++d) {
      for (int64_t h = g.first(1, oh); h < g.last(1, oh); ++h) {
        const int64_t row_cell = (g.inside(0, od, d) * g.kernel[1] + g.inside(1, oh, h)) * g.kernel[2];
        for (int64_t w = g.first(2, ow); w < g.last(2, ow); ++w) {
          const T* from = x + ((d * g.in[1] + h) * g.in[2] + w) * g.channels + channel;
          const int32_t cell = static_cast<int32_t>(row_cell + g.inside(2, ow, w));
          for (int i = 0; i < count; ++i) {
            if constexpr (kMax) {
              const bool larger = from[i] > kept[i];
              kept[i] = larger ? from[i] : kept[i];
              if constexpr (kIndex) cells[i] = larger ? cell : cells[i];
            } else {
              kept[i] += from[i];
            }
          }
        }
      }
    }
    T* to = y + ow * g.channels + channel;
    if constexpr (kMax) {
      for (int i = 0; i < count; ++i) to[i] = kept[i];
    } else {
      const T divisor = static_cast<T>(g.divisor(od, oh, ow));
      for (int i = 0; i < count; ++i) to[i] = kept[i] / divisor;
    }
    if constexpr (kIndex) {
      Index* index_to = index + ow * g.channels + channel;
      for (int i = 0; i < count; ++i) index_to[i] = static_cast<Index>(cells[i]);
    }
  }
}

template <bool kMax, bool kIndex, typename T, typename Index>
void forward_channels_last(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const int64_t in_image = g.in[0] * g.in[1] * g.in[2] * g.channels, out_row = g.out[2] * g.channels;
  const int64_t rows_per_image = g.out[0] * g.out[1], rows = g.images * rows_per_image;
#pragma omp parallel for schedule(static) if (rows * out_row > kSmall)
  for (int64_t row = 0; row < rows; ++row) {
    const T* image = x + row / rows_per_image * in_image;
    const int64_t od = row % rows_per_image / g.out[1], oh = row % g.out[1];
    T* to = y + row * out_row;
    Index* index_to = kIndex ? index + row * out_row : nullptr;
    int64_t channel = 0;
    for (; channel + kLanes <= g.channels; channel += kLanes) {
      pool_row<kLanes, kMax, kIndex>(g, image, od, oh, channel, kLanes, to, index_to);
    }
    for (; channel + 16 <= g.channels; channel += 16) {
      pool_row<16, kMax, kIndex>(g, image, od, oh, channel, 16, to, index_to);
    }
    if (channel < g.channels) {
      pool_row<0, kMax, kIndex>(g, image, od, oh, channel, static_cast<int>(g.channels - channel), to, index_to);
    }
  }
}

// One row of dx gathers from the outputs whose windows hold its cells.
template <int kCount, bool kMax, typename T, typename Index>
void gather_row(const PoolGeometry& g, const T* dy, const Index* index, int64_t d, int64_t h, int64_t channel, int lanes,
                T* dx) {
  const int count = kCount ? kCount : lanes;
  for (int64_t w = 0; w < g.in[2]; ++w) {
    T sum[kLanes];
    for (int i = 0; i < count; ++i) sum[i] = 0;
    for (int64_t od = g.from(0, d); od < g.to(0, d); ++od) {
      for (int64_t oh = g.from(1, h); oh < g.to(1, h); ++oh) {
        const int64_t row_cell = (g.inside(0, od, d) * g.kernel[1] + g.inside(1, oh, h)) * g.kernel[2];
        for (int64_t ow = g.from(2, w); ow < g.to(2, w); ++ow) {
          const int64_t at = ((od * g.out[1] + oh) * g.out[2] + ow) * g.channels + channel;
          const T* from = dy + at;
          if constexpr (kMax) {
            const Index* kept = index + at;
            const Index cell = static_cast<Index>(row_cell + g.inside(2, ow, w));
            for (int i = 0; i < count; ++i) sum[i] += kept[i] == cell ? from[i] : T(0);
          } else {
            const T divisor = static_cast<T>(g.divisor(od, oh, ow));
            for (int i = 0; i < count; ++i) sum[i] += from[i] / divisor;
          }
        }
      }
    }
    T* to = dx + w * g.channels + channel;
    for (int i = 0; i < count; ++i) to[i] = sum[i];
  }
}

template <bool kMax, typename T, typename Index>
void backward_channels_last(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  const int64_t out_image = g.out[0] * g.out[1] * g.out[2] * g.channels, in_row = g.in[2] * g.channels;
  const int64_t rows_per_image = g.in[0] * g.in[1], rows = g.images * rows_per_image;
#pragma omp parallel for schedule(static) if (rows * in_row > kSmall)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t image = row / rows_per_image * out_image;
    const Index* image_index = kMax ? index + image : nullptr;
    const int64_t d = row % rows_per_image / g.in[1], h = row % g.in[1];
    T* to = dx + row * in_row;
    int64_t channel = 0;
    for (; channel + kLanes <= g.channels; channel += kLanes) {
      gather_row<kLanes, kMax>(g, dy + image, image_index, d, h, channel, kLanes, to);
    }
    for (; channel + 16 <= g.channels; channel += 16) {
      gather_row<16, kMax>(g, dy + image, image_index, d, h, channel, 16, to);
    }
    if (channel < g.channels) {
      gather_row<0, kMax>(g, dy + image, image_index, d, h, channel, static_cast<int>(g.channels - channel), to);
    }
  }
}

// --- plain: x[image][channel][d][h][w] -------------------------------------------------------------------------------

// Calls take(x row position of the first output, output range, cell) for each cell column of one output row.
template <typename Take>
void for_each_tap(const PoolGeometry& g, int64_t od, int64_t oh, const Take& take) {
  for (int64_t d = g.first(0, od); d < g.last(0, od); ++d) {
    for (int64_t h = g.first(1, oh); h < g.last(1, oh); ++h) {
      const int64_t row_cell = (g.inside(0, od, d) * g.kernel[1] + g.inside(1, oh, h)) * g.kernel[2];
      for (int64_t k = 0; k < g.kernel[2]; ++k) {
        const PoolRange range(g, k);
        if (range.from >= range.to) continue;
        take((d * g.in[1] + h) * g.in[2] + range.from * g.stride[2] - g.pad[2] + k, range, static_cast<int32_t>(row_cell + k));
      }
    }
  }
}

// Strides 1 and 2 get loops of their own, which vectorise well.
template <typename Loop>
void with_stride(int64_t stride, const Loop& loop) {
  if (stride == 1) return loop([](int64_t i) { return i; });
  if (stride == 2) return loop([](int64_t i) { return 2 * i; });
  loop([stride](int64_t i) { return stride * i; });
}

template <bool kMax, bool kIndex, typename T, typename Index>
void forward_plain(const PoolGeometry& g, const T* x, T* y, Index* index) {
  const int64_t in_plane = g.in[0] * g.in[1] * g.in[2], out_plane = g.out[0] * g.out[1] * g.out[2];
  const int64_t width = g.out[2], planes = g.images * g.channels;
#pragma omp parallel if (planes * out_plane > kSmall)
  {
    std::vector<int32_t> cells(kIndex ? width : 0);
#pragma omp for schedule(static)
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* from = x + plane * in_plane;
      for (int64_t row = 0; row < g.out[0] * g.out[1]; ++row) {
        const int64_t od = row / g.out[1], oh = row % g.out[1];
        T* kept = y + plane * out_plane + row * width;
        std::fill(kept, kept + width, kMax ? static_cast<T>(-FLT_MAX) : T(0));
        std::fill(cells.begin(), cells.end(), -1);
        int32_t* cell_of = cells.data();
        for_each_tap(g, od, oh, [&](int64_t at, const PoolRange& range, int32_t cell) {
          const T* taps = from + at;
          with_stride(g.stride[2], [&](auto step) {
            const int64_t count = range.to - range.from;
            T* to = kept + range.from;
            int32_t* cell_to = cell_of + range.from;
#pragma omp simd
            for (int64_t i = 0; i < count; ++i) {
              const T value = taps[step(i)];
              if constexpr (kMax) {
                const bool larger = value > to[i];
                to[i] = larger ? value : to[i];
                if constexpr (kIndex) cell_to[i] = larger ? cell : cell_to[i];
              } else {
                to[i] += value;
              }
            }
          });
        });
        if constexpr (!kMax) {
          for (int64_t i = 0; i < width; ++i) kept[i] /= static_cast<T>(g.divisor(od, oh, i));
        }
        if constexpr (kIndex) {
          Index* index_to = index + plane * out_plane + row * width;
          for (int64_t i = 0; i < width; ++i) index_to[i] = static_cast<Index>(cells[i]);
        }
      }
    }
  }
}

// Scatters plane by plane: a plane belongs to one thread.
template <bool kMax, typename T, typename Index>
void backward_plain(const PoolGeometry& g, const T* dy, const Index* index, T* dx) {
  const int64_t in_plane = g.in[0] * g.in[1] * g.in[2], out_plane = g.out[0] * g.out[1] * g.out[2];
  const int64_t width = g.out[2], planes = g.images * g.channels;
  std::vector<int64_t> place(kMax ? g.cells() : 0);  // of each cell, from the window's first one
  for (size_t cell = 0; cell < place.size(); ++cell) {
    const int64_t row = static_cast<int64_t>(cell) / g.kernel[2], w = static_cast<int64_t>(cell) % g.kernel[2];
    place[cell] = (row / g.kernel[1] * g.in[1] + row % g.kernel[1]) * g.in[2] + w;
  }
#pragma omp parallel if (planes * in_plane > kSmall)
  {
    std::vector<T> shares(kMax ? 0 : width);
#pragma omp for schedule(static)
    for (int64_t plane = 0; plane < planes; ++plane) {
      T* to = dx + plane * in_plane;
      std::fill(to, to + in_plane, T(0));
      for (int64_t row = 0; row < g.out[0] * g.out[1]; ++row) {
        const int64_t od = row / g.out[1], oh = row % g.out[1], at = plane * out_plane + row * width;
        if constexpr (kMax) {
          T* corner = to + ((od * g.stride[0] - g.pad[0]) * g.in[1] + oh * g.stride[1] - g.pad[1]) * g.in[2] - g.pad[2];
          for (int64_t ow = 0; ow < width; ++ow, corner += g.stride[2]) {
            const Index cell = index[at + ow];
            if (cell != static_cast<Index>(-1)) corner[place[cell]] += dy[at + ow];
          }
        } else {
          for (int64_t i = 0; i < width; ++i) shares[i] = dy[at + i] / static_cast<T>(g.divisor(od, oh, i));
          for_each_tap(g, od, oh, [&](int64_t first, const PoolRange& range, int32_t) {
            T* taps = to + first;
            const T* share = shares.data() + range.from;
            with_stride(g.stride[2], [&](auto step) {
#pragma omp simd
              for (int64_t i = 0; i < range.to - range.from; ++i) taps[step(i)] += share[i];
            });
          });
        }
      }
    }
  }
}

// Whether the loops here beat the plain body: vectors need eight lanes.
bool serves(Context& context, const PoolWindow& window, const PoolGeometry& g) {
  const bool method = window.method == PoolMethod::max || window.method == PoolMethod::average;
  return context.device() == Device::cpu && context.implementation != "plain" && method &&
         (g.channels_last ? g.channels : g.out[2]) >= 8;
}

// Calls body<T, Index>() for the tensor's type and the window's kind of index.
template <typename Body>
void with_types(const Tensor& tensor, const PoolWindow& window, const Body& body) {
  on(tensor, [&]<typename T>() {
    window.index_dtype() == DType::u8 ? body.template operator()<T, uint8_t>() : body.template operator()<T, int32_t>();
  });
}

}  // namespace

void pool_forward(Context& context, const PoolWindow& window, const Random& random, const Tensor& x, const Tensor& y,
                  const Tensor& index, const Tensor& mask) {
  const PoolGeometry g(window, x, y);
  if (mask || !serves(context, window, g)) return pool_forward_plain(context, window, random, x, y, index, mask);
  with_types(x, window, [&]<typename T, typename Index>() {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    Index* cells = index.data<Index>();
    if (window.method == PoolMethod::average) {
      g.channels_last ? forward_channels_last<false, false>(g, from, to, cells) : forward_plain<false, false>(g, from, to, cells);
    } else if (index) {
      g.channels_last ? forward_channels_last<true, true>(g, from, to, cells) : forward_plain<true, true>(g, from, to, cells);
    } else {
      g.channels_last ? forward_channels_last<true, false>(g, from, to, cells) : forward_plain<true, false>(g, from, to, cells);
    }
  });
}

void pool_backward(Context& context, const PoolWindow& window, const Tensor& x, const Tensor& index, const Tensor& dy,
                   const Tensor& dx) {
  const PoolGeometry g(window, dx, dy);
  if (!serves(context, window, g)) return pool_backward_plain(context, window, x, index, dy, dx);
  with_types(dy, window, [&]<typename T, typename Index>() {
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    const Index* cells = index.data<Index>();
    if (window.method == PoolMethod::average) {
      g.channels_last ? backward_channels_last<false>(g, from, cells, to) : backward_plain<false>(g, from, cells, to);
    } else {
      g.channels_last ? backward_channels_last<true>(g, from, cells, to) : backward_plain<true>(g, from, cells, to);
    }
  });
}

}  // namespace crema
