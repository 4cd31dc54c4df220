/* A step of gradient descent with momentum.
   needs: penalty */
static void sgd(float *restrict w, float *restrict history, const float *restrict gradient,
                int32_t count, float rate, float momentum, struct decay decay) {
  for (int32_t i = 0; i < count; ++i) {
    history[i] = rate * (gradient[i] + penalty(w[i], decay)) + momentum * history[i];
    w[i] -= history[i];
  }
}
