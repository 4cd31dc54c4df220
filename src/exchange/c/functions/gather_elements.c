/* y[o][i][k] = x[o][indices[o][i][k]][k], for as many indices as y has elements. */
static void gather_elements(float *y, const float *x, const int32_t *indices, int32_t outer,
                            int32_t extent, int32_t count, int32_t inner) {
  for (int32_t i = 0; i < outer * count * inner; ++i) {
    const int32_t index = indices[i] < 0 ? indices[i] + extent : indices[i];
    y[i] = x[((size_t)(i / (count * inner)) * extent + index) * inner + i % inner];
  }
}
