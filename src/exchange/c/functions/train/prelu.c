/* A batch whose channels have a slope below zero each. */
struct prelu {
  int32_t samples, channels, positions;
};
