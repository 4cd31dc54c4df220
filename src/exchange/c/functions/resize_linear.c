/* Interpolates between pixels; the corners of both images are in the same places. */
static void resize_linear(float *y, const float *x, int32_t planes, int32_t rows, int32_t columns,
                          int32_t to_rows, int32_t to_columns) {
  const float down = to_rows > 1 ? (float)(rows - 1) / (float)(to_rows - 1) : 0;
  const float along = to_columns > 1 ? (float)(columns - 1) / (float)(to_columns - 1) : 0;
  for (int32_t plane = 0; plane < planes; ++plane, x += (size_t)rows * columns) {
    for (int32_t row = 0; row < to_rows; ++row, y += to_columns) {
      const float v = (float)row * down;
      const int32_t above = (int32_t)v;
      const float *const upper = x + (size_t)above * columns;
      const float *const lower = above + 1 < rows ? upper + columns : upper;
      for (int32_t i = 0; i < to_columns; ++i) {
        const float h = (float)i * along;
        const int32_t left = (int32_t)h, right = left + 1 < columns ? left + 1 : left;
        const float a = h - (float)left, b = v - (float)above;
        const float top = upper[left] + a * (upper[right] - upper[left]);
        const float bottom = lower[left] + a * (lower[right] - lower[left]);
        y[i] = top + b * (bottom - top);
      }
    }
  }
}
