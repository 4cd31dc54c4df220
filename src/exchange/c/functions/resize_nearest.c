/* Takes the pixel at (row / scale, column / scale), rounded down. */
static void resize_nearest(float *y, const float *x, int32_t planes, int32_t rows, int32_t columns,
                           int32_t to_rows, int32_t to_columns, float row_scale,
                           float column_scale) {
  for (int32_t plane = 0; plane < planes; ++plane, x += (size_t)rows * columns) {
    for (int32_t row = 0; row < to_rows; ++row, y += to_columns) {
      const int32_t at = (int32_t)((float)row / row_scale);
      const float *const from = x + (size_t)(at < rows ? at : rows - 1) * columns;
      for (int32_t i = 0; i < to_columns; ++i) {
        const int32_t column = (int32_t)((float)i / column_scale);
        y[i] = from[column < columns ? column : columns - 1];
      }
    }
  }
}
