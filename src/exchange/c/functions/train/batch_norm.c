/* Normalizes each channel by the statistics of the batch, which are added to the stored ones, and keeps
   1 / deviation in `inverses`.
   needs: channel_products */

/* A value near the mean of a channel: differences from it have no large sum. */
static float center_of(const float *x, const struct batch_norm *s) {
  const int32_t each = s->samples * s->positions, count = each < 16 ? each : 16;
  float sum = 0;
  for (int32_t k = 0; k < count; ++k) {
    const int32_t at = k * (each / count);
    sum += x[(size_t)(at / s->positions) * s->channels * s->positions + at % s->positions];
  }
  return sum / (float)count;
}

static void batch_norm(float *y, const float *x, float *means, float *variances, float *number,
                       float *inverses, const struct batch_norm *s) {
  const double each = (double)s->samples * s->positions;
  const size_t image = (size_t)s->channels * s->positions;
  for (int32_t c = 0; c < s->channels; ++c, x += s->positions, y += s->positions) {
    const float center = center_of(x, s);
    const struct channel_products all = channel_products(x, x, center, s);
    const double part = all.sum / each, rest = all.products / each - part * part;
    const double variance = rest > 0 ? rest : 0;
    const float mean = center + (float)part;
    const float inverse = (float)(1 / sqrt(variance + s->epsilon));
    means[c] = mean + s->fraction * means[c];
    variances[c] =
        (float)(each > 1 ? variance * (each / (each - 1)) : variance) + s->fraction * variances[c];
    inverses[c] = inverse;
    for (int32_t sample = 0; sample < s->samples; ++sample) {
      const float *const from = x + sample * image;
      float *const to = y + sample * image;
      for (int32_t i = 0; i < s->positions; ++i) to[i] = (from[i] - mean) * inverse;
    }
  }
  *number = 1 + s->fraction * *number;
}
