/* The gradient of a mean: each of `count` values gets the same part. */
static void spread(float *to, const float *dy, int32_t rows, int32_t count) {
  for (int32_t row = 0; row < rows; ++row, to += count) {
    const float part = dy[row] / (float)count;
    for (int32_t i = 0; i < count; ++i) to[i] = part;
  }
}
