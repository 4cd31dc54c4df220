#include "kernels/dropout.h"

#include "kernels/pointwise.h"
#include "tensor/on.h"

namespace crema {
namespace {

// kLast: a row is one place with its quads, else one quad with its places; both lie one after
// another in memory.
template <typename T, bool kLast, int kWidth>
struct DropoutBody {
  const T* x;
  T* y;
  DropoutMask mask;
  DropoutDraws draws;
  // What this run serves: its quads, their first channel, and how far apart channels of a quad are.
  int64_t first_quad, quad_count, first_channel, channel_step;
  CREMA_HD Compute<T> kept(uint32_t word, T value) const {
    return word < mask.threshold ? Compute<T>(0) : value * static_cast<Compute<T>>(mask.factor);
  }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / (kLast ? draws.places : quad_count),
                  in_image = row % (kLast ? draws.places : quad_count);
    const int64_t quad = kLast ? column : in_image, place = kLast ? in_image : column;
    Random::Four words{};
    if (mask.threshold > 0)
      words = mask.random.get().four(draws.draw(image, first_quad + quad, place));
    const int64_t step = kLast ? channel_step : channel_step * draws.places;
    const int64_t at = kLast
                           ? row * draws.channels + first_channel + quad
                           : (image * draws.channels + first_channel + quad) * draws.places + place;
    y[at] = kept(words.v[0], x[at]);
    if constexpr (kWidth > 1) y[at + step] = kept(words.v[1], x[at + step]);
    if constexpr (kWidth > 2) y[at + 2 * step] = kept(words.v[2], x[at + 2 * step]);
    if constexpr (kWidth > 3) y[at + 3 * step] = kept(words.v[3], x[at + 3 * step]);
  }
};

template <typename T>
struct DropoutRun {
  Context& context;
  const DropoutMask& mask;
  DropoutDraws draws;
  const T* x;
  T* y;

  template <bool kLast, int kWidth>
  void quads(int64_t first_quad, int64_t count, int64_t first_channel, int64_t channel_step) const {
    const DropoutBody<T, kLast, kWidth> body{x,          y,     mask,          draws,
                                             first_quad, count, first_channel, channel_step};
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

}  // namespace

void dropout(Context& context, const DropoutMask& mask, const Tensor& x, const Tensor& y) {
  const DropoutDraws draws = DropoutDraws::of(x.shape());
  on_real(x, [&]<typename T>() {
    const DropoutRun<T> run{context, mask, draws, x.data<T>(), y.data<T>()};
    if (draws.places == 1 || x.format().order == Order::channels_last) {
      run.template all<true>();
    } else {
      run.template all<false>();
    }
  });
}

}  // namespace crema
