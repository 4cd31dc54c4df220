// Max unpooling on the CPU.
#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/pool/unpool_destinations.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Calls body(source, destination), with destination -1 for none, for the values of a
// row in order. A thread has its own rows or, in channels-last order, its own channels.
constexpr int64_t kChannels = 16;

template <typename T, typename Start, typename Body>
void over_destinations(const UnpoolDestinations<T>& destinations, int64_t rows, const Start& start,
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
          const UnpoolMask<T> position = destinations.mask[source];
          const bool inside =
              position >= 0 && position < static_cast<UnpoolMask<T>>(destinations.positions);
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
void require_positions(const UnpoolDestinations<T>& destinations, const Tensor& mask,
                       const Shape& y) {
  const auto maximum = static_cast<UnpoolMask<T>>(destinations.positions);
  const int64_t count = mask.count();
  int64_t wrong = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : wrong)
  for (int64_t i = 0; i < count; ++i)
    wrong += destinations.mask[i] >= -1 && destinations.mask[i] < maximum ? 0 : 1;
  for (int64_t i = 0; wrong > 0 && i < count; ++i) {
    const UnpoolMask<T> position = destinations.mask[i];
    require(position >= -1 && position < maximum, "the mask names position ", position,
            ", but the top has ", destinations.positions, " positions (", y.brief(),
            "): it must be as large as the bottom of the pooling that made the mask");
  }
}

Refusal unpool_cpu(Context&, const Tensor& x, const Tensor& mask, const Tensor& /*latest*/,
                   const Tensor& y) {
  const int64_t rows = UnpoolRows::of(x).count;
  on(y, [&]<typename T>() {
    const UnpoolDestinations<T> destinations = destinations_of<T>(mask, y);
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
  return nullptr;
}

Refusal unpool_gradient_cpu(Context&, const Tensor& mask, const Tensor& dy, const Tensor& dx) {
  const int64_t rows = UnpoolRows::of(dx).count;
  on(dx, [&]<typename T>() {
    const UnpoolDestinations<T> destinations = destinations_of<T>(mask, dy);
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    over_destinations(
        destinations, rows, [](int64_t, int64_t, int64_t) {},
        [=](int64_t source, int64_t destination) {
          to[source] = destination < 0 ? T(0) : from[destination];
        });
  });
  return nullptr;
}

REGISTER_KERNEL(unpool_kernels, "plain", RunsOn::cpu, 0, unpool_cpu);
REGISTER_KERNEL(unpool_gradient_kernels, "plain", RunsOn::cpu, 0, unpool_gradient_cpu);

}  // namespace

constinit decltype(unpool_kernels) unpool_kernels("max unpooling");
constinit decltype(unpool_gradient_kernels) unpool_gradient_kernels(
    "the gradient of max unpooling");

void unpool(Context& context, const Tensor& x, const Tensor& mask, const Tensor& latest,
            const Tensor& y) {
  if (x.count() == 0) return zero(context, y);
  unpool_kernels.run(context, x, mask, latest, y);
}

void unpool_gradient(Context& context, const Tensor& mask, const Tensor& dy, const Tensor& dx) {
  if (dx.count() > 0) unpool_gradient_kernels.run(context, mask, dy, dx);
}

}  // namespace crema
