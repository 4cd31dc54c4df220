/* A local response normalization across channels. */
struct lrn {
  int32_t samples, channels, positions, size;
  float alpha, beta, bias; /* alpha is divided by the size already */
};
