// Dropout: sets a random share of the values to zero (or another number) and multiplies the rest by
// a factor.
#pragma once

#include "device/context.h"
#include "kernels/pointwise/batch_values.h"
#include "tensor/tensor.h"

namespace crema {

// Maps elements to random words. Words come in fours, so four channels of a position share a draw:
// a quad, with channels q, q + Q, q + 2Q, q + 3Q of 4Q (the remaining channels form one more quad).
// A draw depends only on the quad and the logical position: the mask is the same in every order.
struct DropoutLayout {
  int64_t images, channels, positions;
  // Where ranks share a batch: the first image of this one; of one list, which is that of all ranks,
  // its first channel.
  int64_t first_image = 0, first_channel = 0;

  // Without spatial axes the whole blob is one list of channels at one position.
  static DropoutLayout of(const Shape& shape, const BatchShare& samples = {}) {
    if (shape.axes() >= 3 && shape.count(2) > 1)
      return {shape[0], shape[1], shape.count(2), values_before(samples, shape[0])};
    return {1, values_of_all(samples, shape.count()), 1, 0, values_before(samples, shape.count())};
  }
  CREMA_HD int64_t quads() const { return (channels + 3) / 4; }
  CREMA_HD int64_t draw(int64_t image, int64_t quad, int64_t position) const {
    return ((first_image + image) * quads() + quad) * positions + position;
  }
  // The quad of a channel, which is one of the list, and its word there. Without division, which
  // takes a GPU microseconds.
  CREMA_HD int64_t quad(int64_t channel) const {
    const int64_t whole = channels / 4;
    return channel < 4 * whole ? channel - word(channel) * whole : whole;
  }
  CREMA_HD int word(int64_t channel) const {
    const int64_t whole = channels / 4;
    if (channel >= 4 * whole) return static_cast<int>(channel - 4 * whole);
    return (channel >= whole) + (channel >= 2 * whole) + (channel >= 3 * whole);
  }
};

// One of the four values of a draw. Selected by comparisons: a dynamic index would put them into a
// GPU's local memory.
template <typename T>
CREMA_HD T word_of(const T (&four)[4], int word) {
  return word < 2 ? word == 0 ? four[0] : four[1] : word == 2 ? four[2] : four[3];
}

// Which values are kept, as a function of their position and of the pass.
struct DropoutMask {
  PassRandom random;
  uint32_t threshold = 0;   // random words below it drop their value; 0: nothing is dropped
  float factor = 1;         // of the values kept
  BatchShare samples = {};  // whose values these are; all 0: one rank's

  CREMA_HD bool keeps(const Random& drawn, const DropoutLayout& layout, int64_t image,
                      int64_t channel, int64_t position) const {
    channel += layout.first_channel;
    const Random::Four four = drawn.four(layout.draw(image, layout.quad(channel), position));
    return word_of(four.v, layout.word(channel)) >= threshold;
  }
};

// What is added to kept values, and the value of dropped ones.
struct DropoutValues {
  float shift = 0, dropped = 0;
};

// y = x * mask.factor + values.shift where the mask keeps x, else values.dropped. Same shape, dtype
// and order; y may be x.
void dropout(Context& context, const DropoutMask& mask, const Tensor& x, const Tensor& y,
             const DropoutValues& values = {});

}  // namespace crema
