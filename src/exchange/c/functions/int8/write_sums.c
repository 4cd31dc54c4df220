/* Results of sums of 8-bit integers, and what the functions that compute these sums share.
   needs: activate lane_type window */
#define MOST_SUMS 64 /* that are written together */
#if LANES > 1
#define RESULTS 16 /* of a loop of constant length, which becomes vectors */
#else
#define RESULTS 1
#endif
struct int8_result {
  struct activation activation; /* of floats; CLIP is in the bounds of integers */
  float step, low, high;        /* of the integers that are written; step 0: floats are written */
};

struct conv_int8 {
  int32_t samples, groups, channels, outputs; /* channels and outputs: of one group */
  struct window window;
  int32_t taps;   /* of a row of weights; those that are not of the window are zeros */
  int32_t tile;   /* positions whose patches are copied together */
  int32_t flip;   /* 128: x is int8_t, whose sign bit it changes; 0: x is uint8_t */
  int32_t scales; /* 1: each row of weights has a scale of its own */
  struct int8_result result;
};

struct line_of_results {
  float scale, bias, slope, step, low, high; /* slope: below zero */
};

/* The last bit of a float becomes worth 1, so the low byte is that of the nearest integer, halves to the
   even one. Processors that have no vectors of rintf() do this in vectors. */
static inline uint32_t rounded_bits(int32_t sum, int is_leaky, struct line_of_results s) {
  const float v = (float)sum * s.scale + s.bias, leaky = is_leaky && v < 0 ? v * s.slope : v;
  const float n = leaky / s.step, above = n > s.low ? n : s.low;
  const float moved = (above < s.high ? above : s.high) + 12582912.f;
  uint32_t bits;
  memcpy(&bits, &moved, sizeof bits);
  return bits;
}

static inline void write_bytes(uint8_t *restrict to, const int32_t *restrict sums, int is_leaky,
                               struct line_of_results s) {
#ifdef __clang__
  VECTORS
  for (int32_t i = 0; i < RESULTS; ++i) to[i] = (uint8_t)rounded_bits(sums[i], is_leaky, s);
#else /* GCC takes vectors of 16 bytes if the loop has bytes */
  uint32_t bits[RESULTS];
  VECTORS
  for (int32_t i = 0; i < RESULTS; ++i) bits[i] = rounded_bits(sums[i], is_leaky, s);
  VECTORS
  for (int32_t i = 0; i < RESULTS; ++i) to[i] = (uint8_t)bits[i];
#endif
}

static inline void write_integers(uint8_t *to, const int32_t *sums, int32_t count, int is_leaky,
                                  struct line_of_results s) {
  for (; count >= RESULTS; count -= RESULTS, to += RESULTS, sums += RESULTS)
    write_bytes(to, sums, is_leaky, s);
  if (count > 0) {
    uint8_t bytes[RESULTS];
    write_bytes(bytes, sums, is_leaky, s);
    for (int32_t some = RESULTS / 2, at = 0; some > 0; some /= 2) {
      if ((count & some) == 0) continue;
      memcpy(to + at, bytes + at, some);
      at += some;
    }
  }
}

/* Values from `at` on become sum * scale + bias, in floats or rounded. The sums have values up to a multiple
   of RESULTS. */
static void write_sums(void *y, size_t at, const int32_t *sums, int32_t count, float scale,
                       float bias, const struct int8_result *s) {
  const struct activation *const activation = &s->activation;
  if (s->step == 0) {
    float *restrict const to = (float *)y + at;
    for (int32_t i = 0; i < count; ++i) to[i] = (float)sums[i] * scale + bias;
    activate(to, count, *activation);
    return;
  }
  float low = s->low, high = s->high;
  KEEP(low); /* of constants GCC makes branches, in place of minima */
  KEEP(high);
  const struct line_of_results line = {scale, bias, activation->low, s->step, low, high};
  if (activation->kind == LEAKY)
    write_integers((uint8_t *)y + at, sums, count, 1, line);
  else
    write_integers((uint8_t *)y + at, sums, count, 0, line);
}
