/* Subtracts the mean of each row and divides by its deviation plus epsilon. 1 / (deviation + epsilon) is kept
   in `inverses`, unless that is NULL.
   needs: channel_products mvn_shape */
static void mvn(float *y, const float *x, float *inverses, const struct mvn *s) {
  const struct batch_norm row = {1, 1, s->count, 0, 0};
  for (int32_t i = 0; i < s->rows; ++i, x += s->count, y += s->count) {
    const float mean = (float)(channel_products(x, x, 0, &row).sum / s->count);
    float factor = 1;
    if (s->divides) {
      const double squares = channel_products(x, x, mean, &row).products;
      factor = 1 / (sqrtf((float)(squares / s->count)) + s->epsilon);
    }
    if (inverses) inverses[i] = factor;
    for (int32_t k = 0; k < s->count; ++k) y[k] = (x[k] - mean) * factor;
  }
}
