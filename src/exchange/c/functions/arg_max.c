/* The index of the largest value along an axis: of equal ones the first or, `last`, the last. */
static void arg_max(int32_t *y, const float *x, int32_t outer, int32_t count, int32_t inner,
                    int32_t last) {
  for (int32_t o = 0; o < outer * inner; ++o) {
    const float *const from = x + (size_t)(o / inner) * count * inner + o % inner;
    int32_t best = 0;
    for (int32_t i = 1; i < count; ++i) {
      const float v = from[(size_t)i * inner], largest = from[(size_t)best * inner];
      if (v > largest || (last && v == largest)) best = i;
    }
    y[o] = best;
  }
}
