/* The gradient of lrn_within(). `room` has space for its row, and behind it for a plane: dy * x * s^(-beta - 1),
   where s is the sum with its bias.
   needs: lrn_within */
static void lrn_within_gradient(float *to, const float *dy, const float *x, float *room,
                                const struct lrn_within *s) {
  const size_t size = (size_t)s->height * s->width;
  const float factor = 2 * s->alpha * s->beta;
  float *const terms = room + s->width + s->size - 1;
  for (int32_t plane = 0; plane < s->planes; ++plane, to += size, dy += size, x += size) {
    for (int32_t row = 0; row < s->height; ++row) {
      const size_t first = (size_t)row * s->width;
      add_rows(room, x, x, row, s);
      for (int32_t i = 0; i < s->width; ++i) {
        const float sum = 1 + s->alpha * window_sum(room + i, s);
        const float direct = dy[first + i] * lrn_power(sum, s->beta);
        to[first + i] = direct;
        terms[first + i] = direct * x[first + i] / sum;
      }
    }
    for (int32_t row = 0; row < s->height; ++row) {
      const size_t first = (size_t)row * s->width;
      add_rows(room, terms, NULL, row, s);
      for (int32_t i = 0; i < s->width; ++i)
        to[first + i] -= factor * x[first + i] * window_sum(room + i, s);
    }
  }
}
