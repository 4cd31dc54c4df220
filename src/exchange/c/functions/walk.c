/* Axes that are walked together, slowest first: their extents, and the steps of up to three operands.
   The last axis is the innermost loop; axes in front that are not needed have extent 1. */
#define AXES 6
struct walk {
  int32_t extent[AXES], a[AXES], b[AXES], c[AXES];
};

/* Goes to the next row. Returns 0 behind the last one. */
static int next_row(const struct walk *s, int32_t *at, ptrdiff_t *a, ptrdiff_t *b, ptrdiff_t *c) {
  for (int axis = AXES - 2; axis >= 0; --axis) {
    if (++at[axis] < s->extent[axis]) {
      *a += s->a[axis], *b += s->b[axis], *c += s->c[axis];
      return 1;
    }
    at[axis] = 0;
    const ptrdiff_t back = s->extent[axis] - 1;
    *a -= back * s->a[axis], *b -= back * s->b[axis], *c -= back * s->c[axis];
  }
  return 0;
}
