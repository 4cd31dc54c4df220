/* The gradient of batch_norm(), from its result.
   needs: channel_products */
static void batch_norm_gradient(float *to, const float *dy, const float *y, const float *inverses,
                                const struct batch_norm *s) {
  const double each = (double)s->samples * s->positions;
  const size_t image = (size_t)s->channels * s->positions;
  for (int32_t c = 0; c < s->channels; ++c) {
    const size_t first = (size_t)c * s->positions;
    const struct channel_products all = channel_products(dy + first, y + first, 0, s);
    const float factor = inverses[c], constant = (float)(-factor * all.sum / each);
    const float y_factor = (float)(-factor * all.products / each);
    for (int32_t sample = 0; sample < s->samples; ++sample) {
      const size_t at = first + sample * image;
      for (int32_t i = 0; i < s->positions; ++i)
        to[at + i] = factor * dy[at + i] + (y[at + i] * y_factor + constant);
    }
  }
}
