/* The steps of an LSTM, from a state of zero. `sums`: the products of the inputs and the bias, with gates
   i, o, f, c for each sequence of each step; `weights`: of the state, with `hidden` rows.
   needs: matmul_block */
static void lstm(float *y, float *sums, const float *weights, float *cell, int32_t steps,
                 int32_t sequences, int32_t hidden) {
  for (int32_t i = 0; i < sequences * hidden; ++i) cell[i] = 0;
  for (int32_t step = 0; step < steps; ++step) {
    for (int32_t n = 0; n < sequences; ++n, sums += 4 * hidden) {
      float *const h = y + ((size_t)step * sequences + n) * hidden;
      float *const c = cell + (size_t)n * hidden;
      if (step > 0)
        matmul_block(sums, h - (size_t)sequences * hidden, weights, hidden, 4 * hidden, 4 * hidden);
      for (int32_t i = 0; i < hidden; ++i) {
        const float in = 1 / (1 + expf(-sums[i]));
        const float out = 1 / (1 + expf(-sums[hidden + i]));
        const float keep = 1 / (1 + expf(-sums[2 * hidden + i]));
        c[i] = keep * c[i] + in * tanhf(sums[3 * hidden + i]);
        h[i] = out * tanhf(c[i]);
      }
    }
  }
}
