/* The `k` largest values along an axis, largest first, or else the smallest, with their indices; of equal
   values the first. */
static void top_k(float *y, int32_t *indices, const float *x, int32_t outer, int32_t count,
                  int32_t inner, int32_t k, int32_t largest) {
  for (int32_t o = 0; o < outer * inner; ++o) {
    const float *const from = x + (size_t)(o / inner) * count * inner + o % inner;
    const size_t to = (size_t)(o / inner) * k * inner + o % inner;
    for (int32_t place = 0; place < k; ++place) {
      int32_t best = -1;
      for (int32_t i = 0; i < count; ++i) {
        const float v = from[(size_t)i * inner];
        const float other = best < 0 ? 0 : from[(size_t)best * inner];
        if (best >= 0 && !(largest ? v > other : v < other)) continue;
        int32_t taken = 0;
        for (int32_t before = 0; before < place; ++before)
          taken |= indices[to + (size_t)before * inner] == i;
        if (!taken) best = i;
      }
      y[to + (size_t)place * inner] = from[(size_t)best * inner];
      indices[to + (size_t)place * inner] = best;
    }
  }
}
