/* Products of matrices: y = x * w + bias. x has `rows` rows of `inner` values, w `inner` rows of
   `columns`; up to two axes in front have steps of their own.
   needs: activate matmul_block */
#define COLUMNS 512 /* that are computed together */
struct matmul {
  int32_t batch[2], x[2], w[2]; /* extents and steps of the axes in front */
  int32_t rows, inner, columns;
  struct activation activation;
};

static void matmul(float *y, const float *x, const float *w, const float *bias,
                   const struct matmul *s) {
  for (int32_t part = 0; part < s->batch[0] * s->batch[1]; ++part) {
    const int32_t b0 = part / s->batch[1], b1 = part % s->batch[1];
    const float *const from = x + (ptrdiff_t)b0 * s->x[0] + (ptrdiff_t)b1 * s->x[1];
    const float *const by = w + (ptrdiff_t)b0 * s->w[0] + (ptrdiff_t)b1 * s->w[1];
    float *const to = y + (size_t)part * s->rows * s->columns;
#ifdef _OPENMP
#pragma omp parallel for if ((double)s->rows * s->inner * s->columns > 4e6)
#endif
    for (int32_t first = 0; first < s->columns; first += COLUMNS) {
      const int32_t count = s->columns - first < COLUMNS ? s->columns - first : COLUMNS;
      for (int32_t row = 0; row < s->rows; ++row) {
        float *const sums = to + (size_t)row * s->columns + first;
        if (bias) {
          memcpy(sums, bias + first, count * sizeof(float));
        } else {
          for (int32_t i = 0; i < count; ++i) sums[i] = 0;
        }
        matmul_block(sums, from + (size_t)row * s->inner, by + first, s->inner, s->columns, count);
        activate(sums, count, s->activation);
      }
    }
  }
}
