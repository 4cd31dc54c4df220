/* The gradient of weight decay: L1 draws each weight to zero by the same amount. */
struct decay {
  float factor;
  int32_t l1;
};

static float penalty(float w, struct decay s) {
  return s.factor * (s.l1 ? (float)((w > 0) - (w < 0)) : w);
}
