/* Times a net of random inputs, with threads that share its weights:
 *
 *   speed NET [WEIGHTS|-] first                 one pass; measure the process from outside
 *   speed NET [WEIGHTS|-] THREADS SECONDS       passes per second, and the process's memory
 *
 * OMP_NUM_THREADS says how many cores each thread uses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crema_infer.h"

static void check(crema_status status) {
  if (status == CREMA_OK) return;
  fprintf(stderr, "%s\n", crema_message());
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fill(crema_model *model) {
  const int inputs = crema_input_count(model);
  int i;
  for (i = 0; i < inputs; ++i) {
    crema_blob input;
    float *values;
    size_t k, count;
    check(crema_input_info(model, i, &input));
    check(crema_input(model, input.name, &values, &count));
    for (k = 0; k < count; ++k) values[k] = (float)(k % 101) / 101;
  }
}

/* Resident memory of this process, in MiB. */
static long resident(void) {
  long pages[2] = {0, 0};
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) return 0;
  fclose(file);
  return pages[1] * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

typedef struct work {
  crema_model *model;
  double end;
  long passes;
} work;

static void *run(void *argument) {
  work *w = argument;
  while (now() < w->end) {
    check(crema_forward(w->model));
    ++w->passes;
  }
  return NULL;
}

int main(int count, char **arguments) {
  enum { MAX_THREADS = 64 };
  work all[MAX_THREADS];
  pthread_t threads[MAX_THREADS];
  crema_model *model;
  const char *weights;
  double begin, seconds;
  long passes = 0;
  int t, n;
  if (count < 4) return 2;
  weights = strcmp(arguments[2], "-") == 0 ? NULL : arguments[2];
  begin = now();
  check(crema_open(arguments[1], weights, NULL, &model));
  fill(model);
  check(crema_forward(model));
  if (count == 4) {
    crema_close(model);
    return 0;
  }
  printf("first result after %.1f ms", 1e3 * (now() - begin));
  n = atoi(arguments[3]);
  seconds = atof(arguments[4]);
  if (n < 1 || n > MAX_THREADS) return 2;
  for (t = 0; t < n; ++t) {
    all[t].model = model;
    if (t > 0) check(crema_share(model, &all[t].model));
    if (t > 0) fill(all[t].model);
    check(crema_forward(all[t].model));
    all[t].passes = 0;
  }
  begin = now();
  for (t = 0; t < n; ++t) {
    all[t].end = begin + seconds;
    if (pthread_create(&threads[t], NULL, run, &all[t]) != 0) return 2;
  }
  for (t = 0; t < n; ++t) {
    pthread_join(threads[t], NULL);
    passes += all[t].passes;
  }
  seconds = now() - begin;
  printf(", %d threads: %.2f passes/s, %ld MiB\n", n, (double)passes / seconds, resident());
  for (t = n; t-- > 0;) crema_close(all[t].model);
  return 0;
}
