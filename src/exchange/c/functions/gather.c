/* Takes slices of `inner` elements at indices along an axis of `extent`; negative ones count from its end. */
static void gather(float *y, const float *x, const int32_t *indices, int32_t outer, int32_t extent,
                   int32_t count, int32_t inner) {
  for (int32_t o = 0; o < outer; ++o) {
    for (int32_t i = 0; i < count; ++i, y += inner) {
      const int32_t index = indices[i] < 0 ? indices[i] + extent : indices[i];
      memcpy(y, x + ((size_t)o * extent + index) * inner, inner * sizeof(float));
    }
  }
}
