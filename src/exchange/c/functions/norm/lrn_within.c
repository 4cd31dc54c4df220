/* Local response normalization within channels. `room` has space for a row with its borders, of
   width + size - 1 floats. */
struct lrn_within {
  int32_t planes, height, width, size;
  float alpha, beta; /* alpha is divided by the window's size already */
};

/* to = the sums along the window's rows of a * b or, without b, of a; its borders are zeros. */
static void add_rows(float *to, const float *a, const float *b, int32_t y,
                     const struct lrn_within *s) {
  const int32_t half = s->size / 2, end = y + half < s->height ? y + half + 1 : s->height;
  memset(to, 0, (size_t)(s->width + s->size - 1) * sizeof(float));
  for (int32_t row = y < half ? 0 : y - half; row < end; ++row) {
    const size_t at = (size_t)row * s->width;
    if (b) {
      for (int32_t i = 0; i < s->width; ++i) to[half + i] += a[at + i] * b[at + i];
    } else {
      for (int32_t i = 0; i < s->width; ++i) to[half + i] += a[at + i];
    }
  }
}

static float window_sum(const float *from, const struct lrn_within *s) {
  float sum = from[0];
  for (int32_t k = 1; k < s->size; ++k) sum += from[k];
  return sum;
}

static float lrn_power(float sum, float beta) {
  if (beta != 0.75f) return powf(sum, -beta);
  const float root = sqrtf(sum);
  return 1 / (root * sqrtf(root));
}

static void lrn_within(float *y, const float *x, float *room, const struct lrn_within *s) {
  const size_t size = (size_t)s->height * s->width;
  for (int32_t plane = 0; plane < s->planes; ++plane, x += size) {
    for (int32_t row = 0; row < s->height; ++row, y += s->width) {
      add_rows(room, x, x, row, s);
      const float *const from = x + (size_t)row * s->width;
      for (int32_t i = 0; i < s->width; ++i)
        y[i] = from[i] * lrn_power(1 + s->alpha * window_sum(room + i, s), s->beta);
    }
  }
}
