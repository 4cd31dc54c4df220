/* Weights that training changes, in the order that conv() reads: blocks of four output channels, tap,
   channel of the block. */
static void pack_blocks(float *to, const float *weights, int32_t groups, int32_t outputs,
                        int32_t taps) {
  for (int32_t group = 0; group < groups; ++group, weights += (size_t)outputs * taps) {
    for (int32_t first = 0; first < outputs; first += 4) {
      const int32_t rows = outputs - first < 4 ? outputs - first : 4;
      for (int32_t tap = 0; tap < taps; ++tap)
        for (int32_t row = 0; row < rows; ++row)
          *to++ = weights[(size_t)(first + row) * taps + tap];
    }
  }
}
