/* Vectors of floats in memory.
   needs: lane_type */
static lanes load(const float *from) {
  lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

static void store(float *to, lanes v) { memcpy(to, &v, sizeof v); }
