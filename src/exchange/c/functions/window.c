/* Windows over depth, height and width. */
struct window {
  int32_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};
