#include "kernels/pool/unpool.h"

#include <algorithm>
#include <type_traits>

#include "base/ceil_div.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pointwise.h"

namespace crema {
namespace {

template <typename T>
using MaskOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Maps values to the elements of y that the mask names. A row is a plane or, in channels-last
// order, an image.
template <typename T>
struct Destinations {
  const MaskOf<T>* mask;
  int64_t channels, positions, columns;  // channels: 1 in NCHW order
  Divisor each;                          // by the number of channels
  CREMA_HD int64_t source(int64_t row, int64_t column) const { return row * columns + column; }
  // On a GPU. -1: none.
  CREMA_HD int64_t destination_of(int64_t row, int64_t column) const {
    const int64_t position = static_cast<int64_t>(mask[source(row, column)]);
    if (position < 0 || position >= positions) return -1;
    uint32_t channel = static_cast<uint32_t>(column);
    each.split(channel);
    return (row * positions + position) * channels + channel;
  }
};

struct Rows {
  int64_t count, channels;
  static Rows of(const Tensor& x) {
    const Shape& shape = x.shape();
    const bool last = x.format().order == Order::channels_last;
    return last ? Rows{shape[0], shape[1]} : Rows{shape.count(0, 2), 1};
  }
};

template <typename T>
Destinations<T> destinations_of(const Tensor& mask, const Tensor& y) {
  const Rows rows = Rows::of(mask);
  return {mask.data<MaskOf<T>>(), rows.channels, y.shape().count(2), mask.count() / rows.count,
          Divisor(rows.channels)};
}

#ifdef CREMA_CUDA
template <typename T>
struct LatestBody {
  Destinations<T> destinations;
  int32_t* latest;  // 1 + index of the value in its row
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t destination = destinations.destination_of(row, column);
#ifdef __CUDA_ARCH__
    if (destination >= 0) atomicMax(latest + destination, static_cast<int32_t>(column) + 1);
#endif
  }
};

template <typename T>
struct UnpoolBody {
  const T* x;
  const int32_t* latest;
  T* y;
  int64_t columns_x, columns_y;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns_y + column;
    y[i] = latest[i] > 0 ? x[row * columns_x + latest[i] - 1] : T(0);
  }
};

// Four elements per thread.
template <typename T>
struct UnpoolFours {
  const T* x;
  const Pack<int32_t, 4>* latest;
  Pack<T, 4>* y;
  int64_t columns_x;
  Divisor fours;  // of a row of y
  CREMA_HD void operator()(int64_t i) const {
    const int64_t row = fours.quotient(static_cast<uint32_t>(i));
    const Pack<int32_t, 4> numbers = latest[i];
    Pack<T, 4> out;
    for (int k = 0; k < 4; ++k)
      out.v[k] = numbers.v[k] > 0 ? x[row * columns_x + numbers.v[k] - 1] : T(0);
    y[i] = out;
  }
};

template <typename T>
struct UnpoolGradient {
  Destinations<T> destinations;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t destination = destinations.destination_of(row, column);
    dx[destinations.source(row, column)] = destination < 0 ? T(0) : dy[destination];
  }
};

template <typename T>
void unpool_on_gpu(Context& context, const Destinations<T>& destinations, int64_t rows,
                   const Tensor& x, const Tensor& latest, const Tensor& y) {
  zero(context, latest);
  parallel_rows(context, rows, destinations.columns,
                LatestBody<T>{destinations, latest.data<int32_t>()});
  const int64_t columns_y = y.count() / rows;
  if (columns_y % 4 == 0 && y.count() < Divisor::kMax &&
      takes_packs<char>(0, latest.raw(), y.raw())) {
    return parallel_for(
        context, y.count() / 4,
        UnpoolFours<T>{x.data<T>(), latest.data<Pack<int32_t, 4>>(), y.data<Pack<T, 4>>(),
                       destinations.columns, Divisor(columns_y / 4)});
  }
  parallel_rows(context, rows, columns_y,
                UnpoolBody<T>{x.data<T>(), latest.data<int32_t>(), y.data<T>(),
                              destinations.columns, columns_y});
}
#endif

// On the CPU: calls body(source, destination), with destination -1 for none, for the values of a
// row in order. A thread has its own rows or, in channels-last order, its own channels.
constexpr int64_t kChannels = 16;

template <typename T, typename Start, typename Body>
void over_destinations(const Destinations<T>& destinations, int64_t rows, const Start& start,
                       const Body& body) {
  const int64_t channels = destinations.channels, groups = ceil_div(channels, kChannels);
#pragma omp parallel for schedule(static) collapse(2)
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = group * kChannels, end = std::min(channels, first + kChannels);
      start(row, first, end);
      for (int64_t at = 0; at < destinations.columns; at += channels) {
        for (int64_t channel = first; channel < end; ++channel) {
          const int64_t source = row * destinations.columns + at + channel;
          const MaskOf<T> position = destinations.mask[source];
          const bool inside =
              position >= 0 && position < static_cast<MaskOf<T>>(destinations.positions);
          body(source,
               inside ? (row * destinations.positions + static_cast<int64_t>(position)) * channels +
                            channel
                      : -1);
        }
      }
    }
  }
}

template <typename T>
void require_positions(const Destinations<T>& destinations, const Tensor& mask, const Shape& y) {
  const auto maximum = static_cast<MaskOf<T>>(destinations.positions);
  const int64_t count = mask.count();
  int64_t wrong = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : wrong)
  for (int64_t i = 0; i < count; ++i)
    wrong += destinations.mask[i] >= -1 && destinations.mask[i] < maximum ? 0 : 1;
  for (int64_t i = 0; wrong > 0 && i < count; ++i) {
    const MaskOf<T> position = destinations.mask[i];
    require(position >= -1 && position < maximum, "the mask names position ", position,
            ", but the top has ", destinations.positions, " positions (", y.brief(),
            "): it must be as large as the bottom of the pooling that made the mask");
  }
}

}  // namespace

void unpool(Context& context, const Tensor& x, const Tensor& mask,
            [[maybe_unused]] const Tensor& latest, const Tensor& y) {
  if (x.count() == 0) return zero(context, y);
  const int64_t rows = Rows::of(x).count;
  on_real(y, [&]<typename T>() {
    const Destinations<T> destinations = destinations_of<T>(mask, y);
#ifdef CREMA_CUDA
    if (context.device() == Device::gpu)
      return unpool_on_gpu(context, destinations, rows, x, latest, y);
#endif
    (void)context;
    require_positions(destinations, mask, y.shape());
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const int64_t channels = destinations.channels, positions = destinations.positions;
    over_destinations(
        destinations, rows,
        [=](int64_t row, int64_t first, int64_t end) {
          T* const image = to + row * positions * channels;
          if (end - first == channels) std::fill(image, image + positions * channels, T(0));
          for (int64_t i = 0; end - first < channels && i < positions; ++i)
            std::fill(image + i * channels + first, image + i * channels + end, T(0));
        },
        [=](int64_t source, int64_t destination) {
          if (destination >= 0) to[destination] = from[source];
        });
  });
}

void unpool_gradient(Context& context, const Tensor& mask, const Tensor& dy, const Tensor& dx) {
  if (dx.count() == 0) return;
  const int64_t rows = Rows::of(dx).count;
  on_real(dx, [&]<typename T>() {
    const Destinations<T> destinations = destinations_of<T>(mask, dy);
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
#ifdef CREMA_CUDA
    if (context.device() == Device::gpu)
      return parallel_rows(context, rows, destinations.columns,
                           UnpoolGradient<T>{destinations, from, to});
#endif
    (void)context;
    over_destinations(
        destinations, rows, [](int64_t, int64_t, int64_t) {},
        [=](int64_t source, int64_t destination) {
          to[source] = destination < 0 ? T(0) : from[destination];
        });
  });
}

}  // namespace crema
