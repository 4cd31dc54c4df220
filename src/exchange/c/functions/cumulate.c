/* Sums along an axis up to each element. */
static void cumulate(float *y, const float *x, int32_t outer, int32_t count, int32_t inner) {
  for (int32_t o = 0; o < outer * inner; ++o) {
    const size_t at = (size_t)(o / inner) * count * inner + o % inner;
    float sum = 0;
    for (int32_t i = 0; i < count; ++i)
      y[at + (size_t)i * inner] = sum += x[at + (size_t)i * inner];
  }
}
