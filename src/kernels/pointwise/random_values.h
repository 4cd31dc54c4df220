// Changes each value of a tensor with its own random word; four channels share a draw of four
// words. For .cu files only, like device/parallel.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/pointwise/dropout.h"
#include "kernels/pointwise/pointwise.h"
#include "tensor/on.h"

namespace crema {

template <typename Real>
struct FourNumbers {
  Real v[4];
};

// Uniform in [0, 1), 24 bits.
template <typename Real>
CREMA_HD FourNumbers<Real> uniform_numbers(const Random::Four& words) {
  FourNumbers<Real> numbers;
  for (int i = 0; i < 4; ++i)
    numbers.v[i] = static_cast<Real>(words.v[i] >> 8) * static_cast<Real>(0x1p-24);
  return numbers;
}

// N(0, 1): pairs of words give pairs of numbers by the Box-Muller transform.
template <typename Real>
CREMA_HD FourNumbers<Real> normal_numbers(const Random::Four& words) {
  FourNumbers<Real> numbers;
  for (int pair = 0; pair < 4; pair += 2) {
    const Real u = (static_cast<Real>(words.v[pair] >> 8) + 1) * Real(0x1p-24),
               v = static_cast<Real>(words.v[pair + 1] >> 8) * Real(0x1p-24);
    const Real length = std::sqrt(-2 * std::log(u)), angle = Real(6.283185307179586) * v;
    numbers.v[pair] = length * std::cos(angle);
    numbers.v[pair + 1] = length * std::sin(angle);
  }
  return numbers;
}

// kLast: a row of the loop is a position, its columns are quads (DropoutLayout); else a row is a
// quad, its columns are positions. Both are contiguous in memory.
template <typename T, typename Change, bool kLast, int kWidth>
struct RandomBody {
  const T* x;
  T* y;
  PassRandom random;
  Change change;
  DropoutLayout layout;
  // The quads of this run, their first channel, and the distance between the channels of a quad.
  int64_t first_quad, quad_count, first_channel, channel_step;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / (kLast ? layout.positions : quad_count),
                  in_image = row % (kLast ? layout.positions : quad_count);
    const int64_t quad = kLast ? column : in_image, position = kLast ? in_image : column;
    const auto drawn = change.draw(random, layout.draw(image, first_quad + quad, position));
    const int64_t step = kLast ? channel_step : channel_step * layout.positions;
    const int64_t at =
        kLast ? row * layout.channels + first_channel + quad
              : (image * layout.channels + first_channel + quad) * layout.positions + position;
    using C = Compute<T>;
    y[at] = change(drawn.v[0], C(x[at]));
    if constexpr (kWidth > 1) y[at + step] = change(drawn.v[1], C(x[at + step]));
    if constexpr (kWidth > 2) y[at + 2 * step] = change(drawn.v[2], C(x[at + 2 * step]));
    if constexpr (kWidth > 3) y[at + 3 * step] = change(drawn.v[3], C(x[at + 3 * step]));
  }
};

// A rank's part of one list. Channels that share a draw are `step` apart; i counts the first of each
// quad.
template <typename T, typename Change>
struct RandomPart {
  const T* x;
  T* y;
  PassRandom random;
  Change change;
  DropoutLayout layout;
  int64_t first_channel, count, step;
  CREMA_HD void operator()(int64_t i) const {
    const auto drawn = change.draw(random, layout.draw(0, layout.quad(first_channel + i), 0));
    for (int64_t at = i; at < count; at += step) {
      const int word = layout.word(first_channel + at);
      y[at] = change(word_of(drawn.v, word), Compute<T>(x[at]));
    }
  }
};

template <typename T, typename Change>
struct RandomRun {
  Context& context;
  const PassRandom& random;
  const Change& change;
  DropoutLayout layout;
  const T* x;
  T* y;

  template <bool kLast, int kWidth>
  void quads(int64_t first_quad, int64_t count, int64_t first_channel, int64_t channel_step) const {
    const RandomBody<T, Change, kLast, kWidth> body{
        x, y, random, change, layout, first_quad, count, first_channel, channel_step};
    parallel_rows(context, layout.images * (kLast ? layout.positions : count),
                  kLast ? count : layout.positions, body);
  }

  void part(int64_t count) const {
    const int64_t first = layout.first_channel, whole = layout.channels / 4,
                  rest = std::clamp(4 * whole, first, first + count);
    const auto channels = [&](int64_t begin, int64_t end, int64_t step) {
      const int64_t quads = std::min(end - begin, step), at = begin - first;
      if (quads <= 0) return;
      parallel_for(
          context, quads,
          RandomPart<T, Change>{x + at, y + at, random, change, layout, begin, end - begin, step});
    };
    channels(first, rest, whole);
    channels(rest, first + count, 4);
  }

  template <bool kLast>
  void all() const {
    const int64_t whole = layout.channels / 4;
    quads<kLast, 4>(0, whole, 0, whole);
    switch (layout.channels % 4) {
      case 1:
        return quads<kLast, 1>(whole, 1, 4 * whole, 1);
      case 2:
        return quads<kLast, 2>(whole, 1, 4 * whole, 1);
      case 3:
        return quads<kLast, 3>(whole, 1, 4 * whole, 1);
    }
  }
};

// y[i] = change(drawn[i], x[i]), where change.draw(random, index) returns `v`, four values made
// from the four random words at an index. y may be x. Both have the same order, whichever it is.
// samples: the part of a batch that x is, whose numbers are those of the whole.
template <typename Change>
void change_randomly(Context& context, const PassRandom& random, const BatchShare& samples,
                     const Change& change, const Tensor& x, const Tensor& y) {
  const DropoutLayout layout = DropoutLayout::of(x.shape(), samples);
  on_real(x, [&]<typename T>() {
    const RandomRun<T, Change> run{context, random, change, layout, x.data<T>(), y.data<T>()};
    if (layout.positions == 1 && layout.channels > x.count()) {
      run.part(x.count());
    } else if (layout.positions == 1 || x.format().order == Order::channels_last) {
      run.template all<true>();
    } else {
      run.template all<false>();
    }
  });
}

}  // namespace crema
