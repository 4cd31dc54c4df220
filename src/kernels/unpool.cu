#include "kernels/unpool.h"

#include <atomic>
#include <type_traits>

#include "kernels/divisor.h"
#include "kernels/pointwise.h"

namespace crema {
namespace {

template <typename T>
using MaskOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Which elements of y a mask speaks of: a row is a plane, or an image of channels-last.
template <typename T>
struct Goals {
  const MaskOf<T>* mask;
  int64_t channels, places, columns;  // channels: 1 in plain order
  Divisor each;                       // of the channels
  CREMA_HD int64_t source(int64_t row, int64_t column) const { return row * columns + column; }
  // -1: none.
  CREMA_HD int64_t goal(int64_t row, int64_t column) const {
    const int64_t place = static_cast<int64_t>(mask[source(row, column)]);
    if (place < 0 || place >= places) return -1;
    uint32_t channel = static_cast<uint32_t>(column);
    each.split(channel);
    return (row * places + place) * channels + channel;
  }
};

template <typename T>
struct LatestBody {
  Goals<T> goals;
  int32_t* latest;  // 1 + number of the value within its row
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t goal = goals.goal(row, column);
    if (goal < 0) return;
    const int32_t number = static_cast<int32_t>(column) + 1;
#ifdef __CUDA_ARCH__
    atomicMax(latest + goal, number);
#else
    std::atomic_ref<int32_t> kept(latest[goal]);
    int32_t before = kept.load(std::memory_order_relaxed);
    while (before < number && !kept.compare_exchange_weak(before, number)) {
    }
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

// On a GPU four at a time.
template <typename T>
struct UnpoolFours {
  const T* x;
  const Pack<int32_t, 4>* latest;
  Pack<T, 4>* y;
  int64_t columns_x;
  Divisor fours;  // of a row of y
  CREMA_HD void operator()(int64_t i) const {
    const int64_t row = fours.over(static_cast<uint32_t>(i));
    const Pack<int32_t, 4> numbers = latest[i];
    Pack<T, 4> out;
    for (int k = 0; k < 4; ++k)
      out.v[k] = numbers.v[k] > 0 ? x[row * columns_x + numbers.v[k] - 1] : T(0);
    y[i] = out;
  }
};

template <typename T>
struct UnpoolGradient {
  Goals<T> goals;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t goal = goals.goal(row, column);
    dx[goals.source(row, column)] = goal < 0 ? T(0) : dy[goal];
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
Goals<T> goals_of(const Tensor& mask, const Tensor& y) {
  const Rows rows = Rows::of(mask);
  return {mask.data<MaskOf<T>>(), rows.channels, y.shape().count(2), mask.count() / rows.count,
          Divisor(rows.channels)};
}

}  // namespace

void unpool(Context& context, const Tensor& x, const Tensor& mask, const Tensor& latest,
            const Tensor& y) {
  const Rows rows = Rows::of(x);
  zero(context, latest);
  on_real(y, [&]<typename T>() {
    const Goals<T> goals = goals_of<T>(mask, y);
    if (context.device() == Device::cpu) {
      for (int64_t i = 0; i < mask.count(); ++i) {
        const MaskOf<T> place = goals.mask[i];
        require(place >= -1 && place < goals.places, "the mask names place ", place,
                ", but the top has ", goals.places, " places (", y.shape().brief(),
                "): it must be as large as the bottom of the pooling that made the mask");
      }
    }
    parallel_rows(context, rows.count, goals.columns, LatestBody<T>{goals, latest.data<int32_t>()});
    const int64_t columns_y = y.count() / rows.count;
    if (context.device() == Device::gpu && columns_y % 4 == 0 && y.count() < Divisor::kMost &&
        takes_packs<char>(0, latest.raw(), y.raw())) {
      return parallel_for(
          context, y.count() / 4,
          UnpoolFours<T>{x.data<T>(), latest.data<Pack<int32_t, 4>>(), y.data<Pack<T, 4>>(),
                         goals.columns, Divisor(columns_y / 4)});
    }
    parallel_rows(
        context, rows.count, columns_y,
        UnpoolBody<T>{x.data<T>(), latest.data<int32_t>(), y.data<T>(), goals.columns, columns_y});
  });
}

void unpool_gradient(Context& context, const Tensor& mask, const Tensor& dy, const Tensor& dx) {
  on_real(dx, [&]<typename T>() {
    const Goals<T> goals = goals_of<T>(mask, dy);
    parallel_rows(context, Rows::of(dx).count, goals.columns,
                  UnpoolGradient<T>{goals, dy.data<T>(), dx.data<T>()});
  });
}

}  // namespace crema
