/* Positions [*first, *end) of the windows whose element k is inside the image, along one axis. Element k
   of window o is at o * stride + shift; the result is the shift.
   needs: window */
static int32_t inside(const struct window *s, int axis, int32_t k, int32_t *first, int32_t *end) {
  const int32_t stride = s->stride[axis], shift = k * s->dilation[axis] - s->pad[axis];
  *first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  *end = s->in[axis] > shift ? (s->in[axis] - shift + stride - 1) / stride : 0;
  if (*end > s->out[axis]) *end = s->out[axis];
  if (*end < *first) *end = *first;
  return shift;
}
