/* The gradient of lrn(), for some positions at a time. `room` has space for 2 * SOME * channels floats:
   s^-beta and dy * x * s^(-beta - 1), where s is the sum with its bias.
   needs: lrn_shape */
#define SOME 16

static void lrn_gradient(float *to, const float *dy, const float *x, float *room,
                         const struct lrn *s) {
  const int32_t before = (s->size - 1) / 2, behind = s->size / 2, last = s->channels - 1;
  const size_t image = (size_t)s->channels * s->positions;
  float *const powers = room, *const terms = room + (size_t)SOME * s->channels;
  for (int32_t sample = 0; sample < s->samples; ++sample, to += image, dy += image, x += image) {
    for (int32_t at = 0; at < s->positions; at += SOME) {
      const int32_t count = s->positions - at < SOME ? s->positions - at : SOME;
      for (int32_t c = 0; c < s->channels; ++c) {
        float sums[SOME] = {0};
        const int32_t end = c + behind < last ? c + behind : last;
        for (int32_t k = c < before ? 0 : c - before; k <= end; ++k) {
          const float *const v = x + (size_t)k * s->positions + at;
          for (int32_t i = 0; i < count; ++i) sums[i] += v[i] * v[i];
        }
        const size_t here = (size_t)c * s->positions + at;
        for (int32_t i = 0; i < count; ++i) {
          const float sum = s->bias + s->alpha * sums[i], power = powf(sum, -s->beta);
          powers[c * SOME + i] = power;
          terms[c * SOME + i] = dy[here + i] * x[here + i] * power / sum;
        }
      }
      for (int32_t c = 0; c < s->channels; ++c) {
        float sums[SOME] = {0};
        const int32_t end = c + before < last ? c + before : last;
        for (int32_t k = c < behind ? 0 : c - behind; k <= end; ++k)
          for (int32_t i = 0; i < count; ++i) sums[i] += terms[k * SOME + i];
        const size_t here = (size_t)c * s->positions + at;
        for (int32_t i = 0; i < count; ++i)
          to[here + i] =
              dy[here + i] * powers[c * SOME + i] - 2 * s->alpha * s->beta * x[here + i] * sums[i];
      }
    }
  }
}
