/* The gradient of a bias: to[i] = the sum over `outer` and `inner` of dy, whose middle axis is i. */
static void sum_rows(float *to, const float *dy, int32_t outer, int32_t count, int32_t inner) {
  for (int32_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int32_t o = 0; o < outer; ++o) {
      const float *const from = dy + ((size_t)o * count + i) * inner;
      float part = 0;
      for (int32_t k = 0; k < inner; ++k) part += from[k];
      sum += part;
    }
    to[i] = sum;
  }
}
