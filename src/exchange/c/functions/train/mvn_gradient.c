/* The gradient of mvn(), from its result.
   needs: channel_products mvn_shape */
static void mvn_gradient(float *to, const float *dy, const float *y, const float *inverses,
                         const struct mvn *s) {
  const struct batch_norm row = {1, 1, s->count, 0, 0};
  for (int32_t i = 0; i < s->rows; ++i, to += s->count, dy += s->count, y += s->count) {
    const struct channel_products all = channel_products(dy, y, 0, &row);
    const float factor = inverses[i], mean = (float)(all.sum / s->count);
    const float y_factor = s->divides ? (float)(all.products / s->count) : 0;
    for (int32_t k = 0; k < s->count; ++k) to[k] = factor * (dy[k] - mean - y[k] * y_factor);
  }
}
