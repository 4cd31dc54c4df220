// Dropout: a random share of the values becomes zero (or another number), the rest is multiplied by
// a factor.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

// Who draws what. Random words come in fours, so four channels at one place share a draw: a quad,
// with channels q, q + Q, q + 2Q, q + 3Q of 4Q (the rest of the channels is one more quad). A draw
// belongs to a quad and a logical place: the mask is the same in every order.
struct DropoutDraws {
  int64_t images, channels, places;

  // Without spatial axes the whole blob is one list of channels at one place.
  static DropoutDraws of(const Shape& shape) {
    if (shape.axes() >= 3 && shape.count(2) > 1) return {shape[0], shape[1], shape.count(2)};
    return {1, shape.count(), 1};
  }
  CREMA_HD int64_t quads() const { return (channels + 3) / 4; }
  CREMA_HD int64_t draw(int64_t image, int64_t quad, int64_t place) const {
    return (image * quads() + quad) * places + place;
  }
  // Of a channel: its quad, and its word there. Without dividing, which takes a GPU microseconds.
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

struct DropoutMask {
  PassRandom random;
  uint32_t threshold = 0;  // random words below it drop their value; 0: nothing is dropped
  float factor = 1;        // of what stays

  CREMA_HD bool keeps(const Random& drawn, const DropoutDraws& draws, int64_t image,
                      int64_t channel, int64_t place) const {
    const Random::Four four = drawn.four(draws.draw(image, draws.quad(channel), place));
    // Chosen by comparing: an index that is not known would put the words into memory.
    const int word = draws.word(channel);
    return (word < 2    ? word == 0 ? four.v[0] : four.v[1]
               : word == 2 ? four.v[2]
                        : four.v[3]) >= threshold;
  }
};

// What is added to values that stay, and what those become that do not.
struct DropoutValues {
  float shift = 0, dropped = 0;
};

// y may be x. Both in the same order.
void dropout(Context& context, const DropoutMask& mask, const Tensor& x, const Tensor& y,
             const DropoutValues& values = {});

}  // namespace crema
