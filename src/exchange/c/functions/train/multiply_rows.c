/* The gradient of what a matrix multiplies: to = x * w, with w in rows of `columns` values.
   needs: matmul_block */
static void multiply_rows(float *to, const float *x, const float *w, int32_t rows, int32_t inner,
                          int32_t columns) {
  for (int32_t row = 0; row < rows; ++row, to += columns, x += inner) {
    memset(to, 0, columns * sizeof(float));
    matmul_block(to, x, w, inner, columns, columns);
  }
}
