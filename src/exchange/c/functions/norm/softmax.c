/* Softmax along an axis; `inner`: the elements behind the axis. */
static void softmax(float *y, const float *x, int32_t outer, int32_t count, int32_t inner,
                    int32_t of_log) {
  for (int32_t o = 0; o < outer; ++o, x += (size_t)count * inner, y += (size_t)count * inner) {
    for (int32_t i = 0; i < inner; ++i) {
      float largest = x[i], sum = 0;
      for (int32_t k = 1; k < count; ++k)
        if (x[(size_t)k * inner + i] > largest) largest = x[(size_t)k * inner + i];
      for (int32_t k = 0; k < count; ++k) {
        const float power = x[(size_t)k * inner + i] - largest;
        sum += expf(power);
        y[(size_t)k * inner + i] = of_log ? power : expf(power);
      }
      const float log_sum = of_log ? logf(sum) : 0;
      for (int32_t k = 0; k < count; ++k) {
        float *const v = y + (size_t)k * inner + i;
        *v = of_log ? *v - log_sum : *v / sum;
      }
    }
  }
}
