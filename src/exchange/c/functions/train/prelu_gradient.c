/* The gradient of a PReLU's input.
   needs: prelu */
static void prelu_gradient(float *to, const float *dy, const float *x, const float *slopes,
                           const struct prelu *s) {
  for (int32_t plane = 0; plane < s->samples * s->channels; ++plane) {
    const float slope = slopes[plane % s->channels];
    for (int32_t i = 0; i < s->positions; ++i) to[i] = x[i] > 0 ? dy[i] : dy[i] * slope;
    to += s->positions;
    dy += s->positions;
    x += s->positions;
  }
}
