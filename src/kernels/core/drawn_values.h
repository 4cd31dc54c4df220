// Values that are changed with a random word each, and the loops that share draws of four words.
// For .cu files only, as device/parallel.h.
#pragma once

#include "kernels/core/dropout.h"
#include "kernels/core/pointwise.h"
#include "tensor/on.h"

namespace crema {

// kLast: a row is one place with its quads (DropoutDraws), else one quad with its places; both lie
// one after another in memory.
template <typename T, typename Change, bool kLast, int kWidth>
struct DrawnBody {
  const T* x;
  T* y;
  PassRandom random;
  Change change;
  DropoutDraws draws;
  // What this run serves: its quads, their first channel, and how far apart channels of a quad are.
  int64_t first_quad, quad_count, first_channel, channel_step;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / (kLast ? draws.places : quad_count),
                  in_image = row % (kLast ? draws.places : quad_count);
    const int64_t quad = kLast ? column : in_image, place = kLast ? in_image : column;
    const auto drawn = change.draw(random, draws.draw(image, first_quad + quad, place));
    const int64_t step = kLast ? channel_step : channel_step * draws.places;
    const int64_t at = kLast
                           ? row * draws.channels + first_channel + quad
                           : (image * draws.channels + first_channel + quad) * draws.places + place;
    using C = Compute<T>;
    y[at] = change(drawn.v[0], C(x[at]));
    if constexpr (kWidth > 1) y[at + step] = change(drawn.v[1], C(x[at + step]));
    if constexpr (kWidth > 2) y[at + 2 * step] = change(drawn.v[2], C(x[at + 2 * step]));
    if constexpr (kWidth > 3) y[at + 3 * step] = change(drawn.v[3], C(x[at + 3 * step]));
  }
};

template <typename T, typename Change>
struct DrawnRun {
  Context& context;
  const PassRandom& random;
  const Change& change;
  DropoutDraws draws;
  const T* x;
  T* y;

  template <bool kLast, int kWidth>
  void quads(int64_t first_quad, int64_t count, int64_t first_channel, int64_t channel_step) const {
    const DrawnBody<T, Change, kLast, kWidth> body{
        x, y, random, change, draws, first_quad, count, first_channel, channel_step};
    parallel_rows(context, draws.images * (kLast ? draws.places : count),
                  kLast ? count : draws.places, body);
  }

  template <bool kLast>
  void all() const {
    const int64_t whole = draws.channels / 4;
    quads<kLast, 4>(0, whole, 0, whole);
    switch (draws.channels % 4) {
      case 1:
        return quads<kLast, 1>(whole, 1, 4 * whole, 1);
      case 2:
        return quads<kLast, 2>(whole, 1, 4 * whole, 1);
      case 3:
        return quads<kLast, 3>(whole, 1, 4 * whole, 1);
    }
  }
};

// y[i] = change(drawn[i], x[i]), where change.draw(random, index) gives `v`, four numbers out of
// the four random words at an index. y may be x. Both in the same order, which changes nothing.
template <typename Change>
void change_drawn(Context& context, const PassRandom& random, const Change& change, const Tensor& x,
                  const Tensor& y) {
  const DropoutDraws draws = DropoutDraws::of(x.shape());
  on_real(x, [&]<typename T>() {
    const DrawnRun<T, Change> run{context, random, change, draws, x.data<T>(), y.data<T>()};
    if (draws.places == 1 || x.format().order == Order::channels_last) {
      run.template all<true>();
    } else {
      run.template all<false>();
    }
  });
}

}  // namespace crema
