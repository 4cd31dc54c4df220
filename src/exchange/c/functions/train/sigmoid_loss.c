/* The cross-entropy of independent answers, of which the targets say how likely they are, and its
   gradient.
   needs: loss_shape */
static float sigmoid_loss(float *to, const float *x, const float *targets, int32_t count,
                          const struct loss_shape *s) {
  int32_t counted = 0;
  float loss = 0;
  for (int32_t i = 0; i < count; ++i) {
    const float t = targets[i];
    to[i] = 0;
    if (s->ignores && (int32_t)t == s->ignored) continue;
    ++counted;
    const float power = expf(x[i] > 0 ? -x[i] : x[i]); /* of what cannot overflow */
    loss += (x[i] > 0 ? x[i] : 0) - x[i] * t + logf(1 + power);
    to[i] = (x[i] > 0 ? 1 / (1 + power) : power / (1 + power)) - t;
  }
  const float scale = loss_scale(s, counted);
  for (int32_t i = 0; i < count; ++i) to[i] *= scale;
  return loss * scale;
}
