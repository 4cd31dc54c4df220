/* Local response normalization across channels.
   needs: lrn_shape */
static void lrn(float *y, const float *x, const struct lrn *s) {
  const int32_t before = (s->size - 1) / 2, behind = s->size / 2;
  for (int32_t sample = 0; sample < s->samples; ++sample) {
    for (int32_t c = 0; c < s->channels; ++c) {
      const int32_t first = c < before ? 0 : c - before;
      const int32_t last = c + behind < s->channels ? c + behind : s->channels - 1;
      float *const to = y + (size_t)c * s->positions;
      const float *const from = x + (size_t)c * s->positions;
      for (int32_t i = 0; i < s->positions; ++i) to[i] = 0;
      for (int32_t k = first; k <= last; ++k) {
        const float *const v = x + (size_t)k * s->positions;
        for (int32_t i = 0; i < s->positions; ++i) to[i] += v[i] * v[i];
      }
      if (s->beta == 0.75f) {
        for (int32_t i = 0; i < s->positions; ++i) {
          const float root = sqrtf(s->bias + s->alpha * to[i]);
          to[i] = from[i] / (root * sqrtf(root));
        }
      } else {
        for (int32_t i = 0; i < s->positions; ++i)
          to[i] = from[i] * powf(s->bias + s->alpha * to[i], -s->beta);
      }
    }
    x += (size_t)s->channels * s->positions;
    y += (size_t)s->channels * s->positions;
  }
}
