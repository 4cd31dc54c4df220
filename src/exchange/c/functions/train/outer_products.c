/* The gradient of a matrix: to = the sum over rows of a and b of their outer products. `column` has room
   for `rows` values.
   needs: matmul_block */
static void outer_products(float *to, const float *a, const float *b, float *column, int32_t rows,
                           int32_t height, int32_t width) {
  for (int32_t i = 0; i < height; ++i, to += width) {
    for (int32_t row = 0; row < rows; ++row) column[row] = a[(size_t)row * height + i];
    memset(to, 0, width * sizeof(float));
    matmul_block(to, column, b, rows, width, width);
  }
}
