/* A convolution whose gradients are computed.
   needs: window */
#define GRADIENT_ROWS 8 /* positions that are computed together */
struct conv_gradient {
  int32_t samples, groups, channels, outputs; /* channels and outputs: of one group */
  int32_t taps;                               /* of a filter */
  struct window window;
};
