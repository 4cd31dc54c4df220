/* The loss of a softmax along an axis for labels that are classes, and its gradient; `inner`: the
   positions behind the axis. A label that is no class does not count.
   needs: loss_shape */
static float softmax_loss(float *to, const float *x, const float *labels, int32_t outer,
                          int32_t classes, int32_t inner, const struct loss_shape *s) {
  int32_t counted = 0;
  float loss = 0;
  for (int32_t at = 0; at < outer * inner; ++at) {
    const size_t begin = (size_t)(at / inner) * classes * inner + at % inner;
    const float *const scores = x + begin;
    float *const d = to + begin;
    const int32_t label = (int32_t)labels[at];
    float largest = scores[0], sum = 0;
    if (label < 0 || label >= classes || (s->ignores && label == s->ignored)) {
      for (int32_t k = 0; k < classes; ++k) d[(size_t)k * inner] = 0;
      continue;
    }
    ++counted;
    for (int32_t k = 1; k < classes; ++k)
      if (scores[(size_t)k * inner] > largest) largest = scores[(size_t)k * inner];
    for (int32_t k = 0; k < classes; ++k) {
      d[(size_t)k * inner] = expf(scores[(size_t)k * inner] - largest);
      sum += d[(size_t)k * inner];
    }
    for (int32_t k = 0; k < classes; ++k) d[(size_t)k * inner] /= sum;
    const float probability = d[(size_t)label * inner];
    loss -= logf(probability > 1.17549435e-38f ? probability : 1.17549435e-38f);
    d[(size_t)label * inner] -= 1;
  }
  const float scale = loss_scale(s, counted);
  for (int32_t i = 0; i < outer * classes * inner; ++i) to[i] *= scale;
  return loss * scale;
}
