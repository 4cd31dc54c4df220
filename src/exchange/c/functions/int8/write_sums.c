/* Results of sums of 8-bit integers, and what the functions that compute these sums share.
   needs: activate window */
#define MOST_SUMS 64 /* that are written together */
struct int8_result {
  struct activation activation;
  float step, low, high; /* of the integers that are written; step 0: floats are written */
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

/* Values from `at` on become sum * scale + bias, in floats or rounded. */
static void write_sums(void *y, size_t at, const int32_t *sums, int32_t count, float scale,
                       float bias, const struct int8_result *s) {
  float values[MOST_SUMS];
  for (int32_t i = 0; i < count; ++i) values[i] = (float)sums[i] * scale + bias;
  activate(values, count, s->activation);
  if (s->step == 0) {
    memcpy((float *)y + at, values, count * sizeof(float));
    return;
  }
  const float step = s->step, low = s->low, high = s->high;
  uint8_t *restrict const to = (uint8_t *)y + at;
  for (int32_t i = 0; i < count; ++i) {
    const float n = values[i] / step, above = n > low ? n : low;
    to[i] = (uint8_t)(int32_t)rintf(above < high ? above : high);
  }
}
