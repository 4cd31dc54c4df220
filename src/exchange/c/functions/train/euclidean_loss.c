/* Half the squared distance to the targets, and its gradient.
   needs: loss_shape */
static float euclidean_loss(float *to, const float *x, const float *targets, int32_t count,
                            const struct loss_shape *s) {
  const float scale = loss_scale(s, 0);
  float loss = 0;
  for (int32_t i = 0; i < count; ++i) {
    const float difference = x[i] - targets[i];
    loss += difference * difference;
    to[i] = difference * scale;
  }
  return loss * scale / 2;
}
