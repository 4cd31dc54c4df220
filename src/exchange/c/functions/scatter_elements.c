/* y is x, but y[o][indices[o][i][k]][k] = updates[o][i][k]. */
static void scatter_elements(float *y, const float *x, const int32_t *indices, const float *updates,
                             int32_t outer, int32_t extent, int32_t count, int32_t inner) {
  memcpy(y, x, (size_t)outer * extent * inner * sizeof(float));
  for (int32_t i = 0; i < outer * count * inner; ++i) {
    const int32_t index = indices[i] < 0 ? indices[i] + extent : indices[i];
    y[((size_t)(i / (count * inner)) * extent + index) * inner + i % inner] = updates[i];
  }
}
