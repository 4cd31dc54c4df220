/* The gradient of average_pool(), of whose elements each gets the same part.
   needs: window */
static void average_pool_gradient(float *to, const float *dy, int32_t planes, int32_t whole,
                                  const struct window *s) {
  const int32_t *const in = s->in, *const out = s->out;
  const int32_t size = in[0] * in[1] * in[2];
  memset(to, 0, (size_t)planes * size * sizeof(float));
  for (int32_t plane = 0; plane < planes; ++plane, to += size) {
    for (int32_t at = 0; at < out[0] * out[1] * out[2]; ++at, ++dy) {
      const int32_t first[3] = {at / (out[2] * out[1]) * s->stride[0] - s->pad[0],
                                at / out[2] % out[1] * s->stride[1] - s->pad[1],
                                at % out[2] * s->stride[2] - s->pad[2]};
      int32_t begin[3], end[3], count = 1; /* taps that are inside the image, along each axis */
      for (int axis = 0; axis < 3; ++axis) {
        const int32_t step = s->dilation[axis], at_first = first[axis];
        begin[axis] = at_first < 0 ? (-at_first + step - 1) / step : 0;
        end[axis] = in[axis] > at_first ? (in[axis] - at_first + step - 1) / step : 0;
        if (end[axis] > s->kernel[axis]) end[axis] = s->kernel[axis];
        count *= whole ? s->kernel[axis] : end[axis] - begin[axis];
      }
      const float part = *dy / (float)count;
      for (int32_t z = begin[0]; z < end[0]; ++z) {
        for (int32_t y = begin[1]; y < end[1]; ++y) {
          const int32_t iz = first[0] + z * s->dilation[0], iy = first[1] + y * s->dilation[1];
          float *const row = to + (size_t)(iz * in[1] + iy) * in[2] + first[2];
          for (int32_t x = begin[2]; x < end[2]; ++x) row[x * s->dilation[2]] += part;
        }
      }
    }
  }
}
