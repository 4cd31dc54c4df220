/* Adds the product of a row of x and `count` columns of w, a matrix with `inner` rows, to y. */
static void matmul_block(float *restrict y, const float *restrict x, const float *restrict w,
                         int32_t inner, int32_t columns, int32_t count) {
  const int32_t rest = inner % 4;
  for (int32_t k = 0; k < rest; ++k, w += columns) {
    for (int32_t i = 0; i < count; ++i) y[i] += x[k] * w[i];
  }
  for (int32_t k = rest; k < inner; k += 4, w += 4 * (size_t)columns) {
    const float *const w1 = w + columns, *const w2 = w1 + columns, *const w3 = w2 + columns;
    const float x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
    for (int32_t i = 0; i < count; ++i) y[i] += x0 * w[i] + x1 * w1[i] + x2 * w2[i] + x3 * w3[i];
  }
}
