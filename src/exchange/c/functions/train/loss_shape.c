/* What a loss is multiplied with and divided by. */
struct loss_shape {
  float weight, divisor; /* divisor 0: the number of labels that count, at least 1 */
  int32_t ignores;       /* 1: labels that equal `ignored` do not count */
  int32_t ignored;
};

static float loss_scale(const struct loss_shape *s, int32_t counted) {
  return s->weight / (s->divisor != 0 ? s->divisor : counted > 0 ? (float)counted : 1);
}
