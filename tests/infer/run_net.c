/* Runs a net in several threads on the same weights, and writes what each of them computed:
 *
 *   run_net NET WEIGHTS OUT files|memory set|in_place THREADS PASSES
 *
 * OUT.T has the outputs of all passes of thread T as text: a line for each, with its name, its shape
 * and its values as hexadecimal floats. */
#include "run_net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crema_infer.h"
#include "read_file.h"

static void check(crema_status status) {
  if (status == CREMA_OK) return;
  fprintf(stderr, "status %d: %s\n", (int)status, crema_message());
  exit(1);
}

typedef struct work {
  crema_model *model;
  FILE *out;
  size_t thread, passes;
  int in_place;
} work;

static void fill(const work *w, size_t pass) {
  const int inputs = crema_input_count(w->model);
  int i;
  for (i = 0; i < inputs; ++i) {
    crema_blob input;
    float *values;
    size_t k, count;
    check(crema_input_info(w->model, i, &input));
    if (w->in_place) {
      check(crema_input(w->model, input.name, &values, &count));
    } else {
      count = input.count;
      values = malloc(count * sizeof *values);
      if (values == NULL) exit(2);
    }
    for (k = 0; k < count; ++k) values[k] = input_value(k, pass * 5 + w->thread);
    if (!w->in_place) {
      check(crema_set_input(w->model, input.name, values, count));
      free(values);
    }
  }
}

static void write_outputs(const work *w) {
  const int outputs = crema_output_count(w->model);
  int i, axis;
  for (i = 0; i < outputs; ++i) {
    crema_blob output;
    float *values;
    size_t k;
    check(crema_output_info(w->model, i, &output));
    values = malloc(output.count * sizeof *values);
    if (values == NULL) exit(2);
    check(crema_read(w->model, output.name, values, output.count));
    fprintf(w->out, "%s", output.name);
    for (axis = 0; axis < output.axes; ++axis) fprintf(w->out, " %ld", (long)output.shape[axis]);
    fputs(":", w->out);
    for (k = 0; k < output.count; ++k) fprintf(w->out, " %a", (double)values[k]);
    fputs("\n", w->out);
    free(values);
  }
}

static void *run(void *argument) {
  const work *w = argument;
  size_t pass;
  for (pass = 0; pass < w->passes; ++pass) {
    fill(w, pass);
    check(crema_forward(w->model));
    write_outputs(w);
  }
  return NULL;
}

static const char *make_slope(void *user, const char *name, const char *text, void **layer) {
  float *factor = malloc(sizeof *factor);
  (void)user, (void)name;
  if (factor == NULL) return "no memory";
  *layer = factor;
  if (sscanf(text, "factor: %f", factor) == 1) return NULL;
  free(factor);
  return "expected custom_param { text: \"factor: NUMBER\" }";
}

static const char *shape_of_slope(void *layer, const crema_shape *bottoms, int count, int index,
                                  crema_shape *shape) {
  (void)layer, (void)index;
  if (count != 1) return "expected one bottom";
  *shape = bottoms[0];
  return NULL;
}

static const char *weights_of_slope(void *layer, const crema_shape *bottoms, int count, int index,
                                    crema_shape *shape) {
  (void)layer, (void)count, (void)index;
  shape->axes = 1;
  shape->extents[0] = bottoms[0].extents[1];
  return NULL;
}

static const char *run_slope(void *layer, const crema_array *bottoms, const crema_array *weights,
                             const crema_array *tops) {
  const crema_shape *shape = &bottoms[0].shape;
  const size_t channels = (size_t)shape->extents[1];
  size_t i, points = 1;
  int axis;
  for (axis = 2; axis < shape->axes; ++axis) points *= (size_t)shape->extents[axis];
  for (i = 0; i < bottoms[0].count; ++i) {
    tops[0].values[i] = slope(bottoms[0].values[i], weights[0].values[i / points % channels],
                              *(const float *)layer);
  }
  return NULL;
}

static void register_slope(void) {
  crema_layer_type type;
  crema_layer_type_init(&type, sizeof type);
  type.type = "Slope";
  type.create = make_slope;
  type.destroy = free;
  type.top_shape = shape_of_slope;
  type.weight_count = 1;
  type.weight_shape = weights_of_slope;
  type.forward = run_slope;
  check(crema_register_layer(&type));
}

static crema_model *open_model(char **arguments) {
  crema_model *model;
  size_t net_size, weights_size;
  char *net, *weights;
  if (strcmp(arguments[4], "files") == 0) {
    check(crema_open(arguments[1], arguments[2], NULL, &model));
    return model;
  }
  net = read_file(arguments[1], &net_size);
  weights = read_file(arguments[2], &weights_size);
  check(crema_open_memory(net, net_size, weights, weights_size, NULL, &model));
  memset(net, 0, net_size); /* they are no longer needed */
  memset(weights, 0, weights_size);
  free(net);
  free(weights);
  return model;
}

int main(int count, char **arguments) {
  enum { MAX_THREADS = 16 };
  work all[MAX_THREADS];
  pthread_t threads[MAX_THREADS];
  crema_model *model;
  int t, n;
  if (count != 8) return 2;
  n = atoi(arguments[6]);
  if (n < 1 || n > MAX_THREADS) return 2;
  register_slope();
  model = open_model(arguments);
  for (t = 0; t < n; ++t) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", arguments[3], t);
    all[t].out = fopen(path, "w");
    if (all[t].out == NULL) return 2;
    all[t].thread = (size_t)t;
    all[t].passes = (size_t)atoi(arguments[7]);
    all[t].in_place = strcmp(arguments[5], "in_place") == 0;
    check(crema_share(model, &all[t].model));
  }
  crema_close(model); /* the weights stay with those that use them */
  for (t = 0; t < n; ++t) {
    if (pthread_create(&threads[t], NULL, run, &all[t]) != 0) return 2;
  }
  for (t = 0; t < n; ++t) {
    pthread_join(threads[t], NULL);
    crema_close(all[t].model);
    fclose(all[t].out);
  }
  return 0;
}
