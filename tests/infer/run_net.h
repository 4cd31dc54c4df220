/* Values for the inputs of nets, the same in C and C++. */
#ifndef RUN_NET_H
#define RUN_NET_H

#include <stddef.h>

static float input_value(size_t index, size_t seed) {
  return (float)(((index + seed) * 7919) % 101) / 101 - 0.4F;
}

/* A layer of the program's own, type "Slope": y = w[c] * x where x > 0, else factor * x, with the factor from its
 * text and c the channel. */
static float slope(float x, float w, float factor) { return x > 0 ? w * x : factor * x; }

#endif
