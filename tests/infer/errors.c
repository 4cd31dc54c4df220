/* Each way to misuse crema_infer.h is a row: a call, its status and a part of its message.
 * The working directory has net.prototxt, net.caffemodel and other.caffemodel, of another net. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crema_infer.h"
#include "read_file.h"

static crema_model *model; /* 2x1x28x28 "data" -> 2x10 "prob" */
static crema_model *opened;
static crema_blob info;
static crema_score scores[10];
static float values[2 * 28 * 28];
static char *net, *weights;
static size_t net_size, weights_size;
static int found;

static crema_options options_of(void) {
  crema_options options;
  crema_options_init(&options, sizeof options);
  return options;
}

static crema_status open_with(const crema_options *options) {
  return crema_open("net.prototxt", "net.caffemodel", options, &opened);
}

static crema_status open_text(const char *text) {
  return crema_open_memory(text, strlen(text), NULL, 0, NULL, &opened);
}

static crema_status missing_net(void) { return crema_open("no.prototxt", NULL, NULL, &opened); }
static crema_status missing_weights(void) {
  return crema_open("net.prototxt", "no.caffemodel", NULL, &opened);
}
static crema_status folder_of_weights(void) {
  return crema_open("net.prototxt", ".", NULL, &opened);
}
static crema_status other_weights(void) {
  return crema_open("net.prototxt", "other.caffemodel", NULL, &opened);
}
static crema_status text_as_weights(void) {
  return crema_open("net.prototxt", "net.prototxt", NULL, &opened);
}
static crema_status no_net_file(void) { return crema_open(NULL, NULL, NULL, &opened); }
static crema_status no_model(void) { return crema_open("net.prototxt", NULL, NULL, NULL); }
static crema_status no_net_text(void) { return crema_open_memory(NULL, 0, NULL, 0, NULL, &opened); }
static crema_status empty_text(void) { return open_text(" \n"); }
static crema_status wrong_text(void) { return open_text("layer { name: \"x\" typ: \"ReLU\" }"); }
static crema_status unknown_layer(void) {
  return open_text("layer { name: \"x\" type: \"Convolutoin\" top: \"x\" }");
}
static crema_status training_layer(void) {
  return open_text("layer { name: \"x\" type: \"Data\" top: \"x\" }");
}
static crema_status empty_weights(void) {
  return crema_open_memory(net, net_size, "", 0, NULL, &opened);
}
static crema_status cut_weights(void) {
  return crema_open_memory(net, net_size, weights, weights_size / 2, NULL, &opened);
}
static crema_status hdf5_weights(void) {
  return crema_open_memory(net, net_size, "\x89HDF\r\n\x1a\n", 8, NULL, &opened);
}
static crema_status zero_size(void) {
  crema_options options = options_of();
  options.size = 0;
  return open_with(&options);
}
static crema_status large_size(void) {
  crema_options options = options_of();
  options.size = sizeof options + 8;
  return open_with(&options);
}
static crema_status negative_batch(void) {
  crema_options options = options_of();
  options.batch = -1;
  return open_with(&options);
}
static crema_status negative_gpu(void) {
  crema_options options = options_of();
  options.use_gpu = 1;
  options.gpu = -1;
  return open_with(&options);
}
static crema_status missing_gpu(void) {
  crema_options options = options_of();
  options.use_gpu = 1;
  options.gpu = 1000;
  return open_with(&options);
}
static crema_status wrong_precision(void) {
  crema_options options = options_of();
  options.precision = "fp8";
  return open_with(&options);
}
static crema_status share_nothing(void) { return crema_share(NULL, &opened); }
static crema_status share_nowhere(void) { return crema_share(model, NULL); }
static crema_status no_input_index(void) { return crema_input_info(model, 1, &info); }
static crema_status negative_index(void) { return crema_output_info(model, -1, &info); }
static crema_status no_info(void) { return crema_output_info(model, 0, NULL); }
static crema_status no_model_info(void) { return crema_input_info(NULL, 0, &info); }
static crema_status unknown_blob(void) { return crema_blob_info(model, "porb", &info); }
static crema_status blob_without_keep(void) { return crema_blob_info(model, "pool1", &info); }
static crema_status no_blob_name(void) { return crema_blob_info(model, NULL, &info); }
static crema_status unknown_input(void) { return crema_set_input(model, "date", values, 1); }
static crema_status short_input(void) { return crema_set_input(model, "data", values, 100); }
static crema_status no_values(void) { return crema_set_input(model, "data", NULL, 1568); }
static crema_status input_without_name(void) {
  float *memory;
  return crema_input(model, NULL, &memory, NULL);
}
static crema_status input_nowhere(void) { return crema_input(model, "data", NULL, NULL); }
static crema_status input_unknown(void) {
  float *memory;
  return crema_input(model, "prob", &memory, NULL);
}
static crema_status reshape_unknown(void) {
  crema_input_info(model, 0, &info);
  info.name = "image";
  return crema_reshape(model, &info, 1);
}
static crema_status reshape_wrongly(void) {
  crema_input_info(model, 0, &info);
  info.shape[2] = 3; /* smaller than the kernel */
  return crema_reshape(model, &info, 1);
}
static crema_status reshape_negative(void) {
  crema_input_info(model, 0, &info);
  info.shape[0] = -5;
  return crema_reshape(model, &info, 1);
}
static crema_status reshape_axes(void) {
  crema_input_info(model, 0, &info);
  info.axes = 33;
  return crema_reshape(model, &info, 1);
}
static crema_status reshape_nothing(void) { return crema_reshape(model, NULL, 1); }
static crema_status damaged_picture(void) {
  return crema_set_picture(model, "data", "\xFF\xD8\xFF\xE0 no JPEG", 12, 0);
}
static crema_status wrong_resize(void) {
  crema_options options = options_of();
  crema_model *resizing;
  crema_status status;
  options.resize = "3";
  status = crema_open("net.prototxt", "net.caffemodel", &options, &resizing);
  if (status != CREMA_OK) return status;
  status = crema_set_picture(resizing, "data", "x", 1, 0);
  crema_close(resizing);
  return status;
}
static crema_status empty_picture(void) { return crema_set_picture(model, "data", "", 0, 0); }
static crema_status no_picture(void) { return crema_set_picture(model, "data", NULL, 9, 0); }
static crema_status picture_of_unknown(void) {
  return crema_set_picture(model, "image", "x", 1, 0);
}
static crema_status pixels_of_nothing(void) {
  return crema_set_pixels(model, "data", values, 0, 28, CREMA_PIXELS_GREY, 0);
}
static crema_status pixels_of_no_kind(void) {
  return crema_set_pixels(model, "data", values, 28, 28, 7, 0);
}
static crema_status pixels_of_sample(void) {
  return crema_set_pixels(model, "data", values, 28, 28, CREMA_PIXELS_GREY, 2);
}
static crema_status unset_input(void) {
  crema_status status;
  if (crema_open("net.prototxt", "net.caffemodel", NULL, &opened) != CREMA_OK) return CREMA_OK;
  status = crema_forward(opened);
  crema_close(opened);
  return status;
}
static crema_status forward_nothing(void) { return crema_forward(NULL); }
static crema_status partly(void) { return crema_forward_to(model, "pool1"); }
static crema_status to_nothing(void) { return crema_forward_to(model, NULL); }
static crema_status short_output(void) { return crema_read(model, "prob", values, 19); }
static crema_status read_nowhere(void) { return crema_read(model, "prob", NULL, 20); }
static crema_status best_of_sample(void) { return crema_best(model, NULL, 2, 1, scores, &found); }
static crema_status best_of_none(void) { return crema_best(model, NULL, 0, 0, scores, &found); }
static crema_status best_of_unknown(void) { return crema_best(model, "fc8", 0, 1, scores, &found); }
static crema_status best_nowhere(void) { return crema_best(model, NULL, 0, 1, NULL, &found); }

static const char *make_nothing(void *user, const char *name, const char *text, void **layer) {
  (void)user, (void)name, (void)layer;
  return strcmp(text, "fine") == 0 ? NULL : "expected fine";
}
static const char *scalar(void *layer, const crema_shape *bottoms, int count, int index,
                          crema_shape *shape) {
  (void)layer, (void)bottoms, (void)count, (void)index;
  shape->axes = 33;
  return NULL;
}
static const char *run_nothing(void *layer, const crema_array *bottoms, const crema_array *w,
                               const crema_array *tops) {
  (void)layer, (void)bottoms, (void)w, (void)tops;
  return NULL;
}
static crema_layer_type own_type(void) {
  crema_layer_type type;
  crema_layer_type_init(&type, sizeof type);
  type.type = "Own";
  type.create = make_nothing;
  type.top_shape = scalar;
  type.forward = run_nothing;
  return type;
}
static crema_status layer_of_no_type(void) { return crema_register_layer(NULL); }
static crema_status layer_of_no_size(void) {
  crema_layer_type type = own_type();
  type.size = 0;
  return crema_register_layer(&type);
}
static crema_status layer_without_forward(void) {
  crema_layer_type type = own_type();
  type.forward = NULL;
  return crema_register_layer(&type);
}
static crema_status layer_without_shapes(void) {
  crema_layer_type type = own_type();
  type.weight_count = 2;
  return crema_register_layer(&type);
}
static crema_status layer_of_crema(void) {
  crema_layer_type type = own_type();
  type.type = "ReLU";
  return crema_register_layer(&type);
}
static crema_status layer_twice(void) {
  crema_layer_type type = own_type();
  if (crema_register_layer(&type) != CREMA_OK) return CREMA_OK;
  return crema_register_layer(&type);
}
#define OWN_NET(text)                                                                         \
  "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 2 } } }\n"       \
  "layer { name: \"own\" type: \"Own\" bottom: \"x\" top: \"y\" custom_param { text: \"" text \
  "\" } }"
static crema_status layer_of_wrong_text(void) { return open_text(OWN_NET("odd")); }
static crema_status layer_of_wrong_shape(void) { return open_text(OWN_NET("fine")); }

typedef struct row {
  const char *name;
  crema_status (*call)(void);
  crema_status status;
  const char *part; /* of the message */
} row;

#define ROW(call, status, part) \
  { #call, call, status, part }
static const row rows[] = {
    ROW(missing_net, CREMA_INVALID_DATA, "no.prototxt"),
    ROW(missing_weights, CREMA_INVALID_DATA, "no.caffemodel"),
    ROW(folder_of_weights, CREMA_INVALID_DATA, "."),
    ROW(other_weights, CREMA_INVALID_DATA, "not one blob of its"),
    ROW(text_as_weights, CREMA_INVALID_DATA, "net.prototxt: is"),
    ROW(no_net_file, CREMA_INVALID_ARGUMENT, "net_file is NULL"),
    ROW(no_model, CREMA_INVALID_ARGUMENT, "model is NULL"),
    ROW(no_net_text, CREMA_INVALID_ARGUMENT, "net is NULL"),
    ROW(empty_text, CREMA_INVALID_DATA, "net: is empty"),
    ROW(wrong_text, CREMA_INVALID_DATA, "net:1:19: "),
    ROW(unknown_layer, CREMA_INVALID_DATA, "Convolution"),
    ROW(training_layer, CREMA_INVALID_DATA, "crema deploy"),
    ROW(empty_weights, CREMA_INVALID_DATA, "net's weights: is empty"),
    ROW(cut_weights, CREMA_INVALID_DATA, "net's weights: "),
    ROW(hdf5_weights, CREMA_INVALID_DATA, "HDF5 is read from files only"),
    ROW(zero_size, CREMA_INVALID_ARGUMENT, "call crema_options_init() first"),
    ROW(large_size, CREMA_INVALID_ARGUMENT, "older than the program's header"),
    ROW(negative_batch, CREMA_INVALID_ARGUMENT, "options.batch is -1"),
    ROW(negative_gpu, CREMA_INVALID_ARGUMENT, "options.gpu is -1"),
    ROW(missing_gpu, CREMA_NO_DEVICE, "there is no GPU 1000"),
    ROW(wrong_precision, CREMA_INVALID_DATA, "fp8"),
    ROW(share_nothing, CREMA_INVALID_ARGUMENT, "model is NULL"),
    ROW(share_nowhere, CREMA_INVALID_ARGUMENT, "model is NULL"),
    ROW(no_input_index, CREMA_INVALID_ARGUMENT, "there is no input 1: the net has 1"),
    ROW(negative_index, CREMA_INVALID_ARGUMENT, "there is no output -1"),
    ROW(no_info, CREMA_INVALID_ARGUMENT, "info is NULL"),
    ROW(no_model_info, CREMA_INVALID_ARGUMENT, "model is NULL"),
    ROW(unknown_blob, CREMA_INVALID_ARGUMENT, "porb"),
    ROW(blob_without_keep, CREMA_INVALID_ARGUMENT, "keep_blobs"),
    ROW(no_blob_name, CREMA_INVALID_ARGUMENT, "name is NULL"),
    ROW(unknown_input, CREMA_INVALID_ARGUMENT, "its inputs are data"),
    ROW(short_input, CREMA_INVALID_ARGUMENT, "100 values were given"),
    ROW(no_values, CREMA_INVALID_ARGUMENT, "values is NULL"),
    ROW(input_without_name, CREMA_INVALID_ARGUMENT, "name is NULL"),
    ROW(input_nowhere, CREMA_INVALID_ARGUMENT, "values is NULL"),
    ROW(input_unknown, CREMA_INVALID_ARGUMENT, "its inputs are data"),
    ROW(reshape_unknown, CREMA_INVALID_ARGUMENT, "its inputs are data"),
    ROW(reshape_wrongly, CREMA_INVALID_ARGUMENT, "conv1"),
    ROW(reshape_negative, CREMA_INVALID_ARGUMENT, "-5"),
    ROW(reshape_axes, CREMA_INVALID_ARGUMENT, "33 axes"),
    ROW(reshape_nothing, CREMA_INVALID_ARGUMENT, "inputs is NULL"),
    ROW(damaged_picture, CREMA_INVALID_DATA, ""),
    ROW(wrong_resize, CREMA_INVALID_DATA, "options.resize 3: expected width x height"),
    ROW(empty_picture, CREMA_INVALID_DATA, ""),
    ROW(no_picture, CREMA_INVALID_ARGUMENT, "file is NULL"),
    ROW(picture_of_unknown, CREMA_INVALID_ARGUMENT, "its inputs are data"),
    ROW(pixels_of_nothing, CREMA_INVALID_ARGUMENT, "0x28"),
    ROW(pixels_of_no_kind, CREMA_INVALID_ARGUMENT, "format is 7"),
    ROW(pixels_of_sample, CREMA_INVALID_ARGUMENT, "no sample 2"),
    ROW(unset_input, CREMA_INVALID_ARGUMENT, "no values were set for data"),
    ROW(forward_nothing, CREMA_INVALID_ARGUMENT, "model is NULL"),
    ROW(partly, CREMA_INVALID_ARGUMENT, "keep_blobs"),
    ROW(to_nothing, CREMA_INVALID_ARGUMENT, "last is NULL"),
    ROW(short_output, CREMA_INVALID_ARGUMENT, "there is memory for 19"),
    ROW(read_nowhere, CREMA_INVALID_ARGUMENT, "values is NULL"),
    ROW(best_of_sample, CREMA_INVALID_ARGUMENT, "there is no sample 2"),
    ROW(best_of_none, CREMA_INVALID_ARGUMENT, "best(0)"),
    ROW(best_of_unknown, CREMA_INVALID_ARGUMENT, "fc8"),
    ROW(best_nowhere, CREMA_INVALID_ARGUMENT, "scores is NULL"),
    ROW(layer_of_no_type, CREMA_INVALID_ARGUMENT, "type is NULL"),
    ROW(layer_of_no_size, CREMA_INVALID_ARGUMENT, "type.size is 0"),
    ROW(layer_without_forward, CREMA_INVALID_ARGUMENT, "forward is NULL"),
    ROW(layer_without_shapes, CREMA_INVALID_ARGUMENT, "weight_count is 2"),
    ROW(layer_of_crema, CREMA_INVALID_ARGUMENT, "ReLU is one of Crema's"),
    ROW(layer_twice, CREMA_INVALID_ARGUMENT, "Own is registered already"),
    ROW(layer_of_wrong_text, CREMA_INVALID_DATA, "net:2:1: layer \"own\": expected fine"),
    ROW(layer_of_wrong_shape, CREMA_INVALID_DATA, "33 axes"),
};

static int failures;

static void expect(int holds, const char *what, const char *detail) {
  if (holds) return;
  printf("%s: %s\n", what, detail);
  ++failures;
}

static void run_rows(void) {
  size_t i;
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
    crema_status status;
    opened = NULL;
    status = rows[i].call();
    if (status != rows[i].status || strstr(crema_message(), rows[i].part) == NULL) {
      printf("%s: status %d instead of %d, message: %s\n", rows[i].name, (int)status,
             (int)rows[i].status, crema_message());
      ++failures;
    }
    if (status != CREMA_OK)
      expect(opened == NULL || opened == model || rows[i].call == unset_input, rows[i].name,
             "a model was made in spite of the error");
  }
}

/* Damaged weights in memory: an error, or a model whose passes work. */
static void run_damages(void) {
  size_t i;
  char *copy = malloc(weights_size);
  if (copy == NULL) exit(2);
  for (i = 0; i < 200; ++i) {
    const size_t at = i < 100 ? i : weights_size / 100 * (i - 100);
    crema_status status;
    memcpy(copy, weights, weights_size);
    copy[at] = (char)(copy[at] ^ 0x55);
    status = crema_open_memory(net, net_size, copy, weights_size, NULL, &opened);
    expect(status == CREMA_OK || status == CREMA_INVALID_DATA, "damaged weights", crema_message());
    if (status == CREMA_OK) {
      expect(crema_set_input(opened, "data", values, 1568) == CREMA_OK, "damaged", crema_message());
      expect(crema_forward(opened) == CREMA_OK, "damaged weights, forward", crema_message());
    }
    crema_close(opened);
    status = crema_open_memory(net, net_size, weights, at, NULL, &opened);
    expect(status == CREMA_INVALID_DATA || status == CREMA_OK, "cut weights", crema_message());
    crema_close(opened);
    status = crema_open_memory(net, net_size * i / 200, weights, weights_size, NULL, &opened);
    expect(status == CREMA_INVALID_DATA || status == CREMA_OK, "cut text", crema_message());
    crema_close(opened);
  }
  free(copy);
}

/* What is not an error: the model still works, and other functions take NULL. */
static void run_rest(void) {
  crema_options options = options_of();
  float before[20], after[20];
  crema_close(NULL);
  crema_options_init(NULL, 8);
  expect(crema_input_count(NULL) == 0 && crema_output_count(NULL) == 0, "counts", "not 0");
  expect(strchr(crema_version(), '.') != NULL, "crema_version", crema_version());
  expect(crema_set_input(model, "data", values, 1568) == CREMA_OK, "set", crema_message());
  expect(crema_forward(model) == CREMA_OK, "forward", crema_message());
  expect(crema_read(model, "prob", before, 20) == CREMA_OK, "read", crema_message());
  expect(crema_best(model, NULL, 1, 10, scores, &found) == CREMA_OK && found == 10 &&
             scores[0].score >= scores[9].score && scores[0].score == before[10 + scores[0].index],
         "best", crema_message());
  /* Up to a layer, and any blob. */
  options.keep_blobs = 1;
  options.deterministic = 1;
  expect(open_with(&options) == CREMA_OK, "keep_blobs", crema_message());
  expect(crema_set_input(opened, "data", values, 1568) == CREMA_OK, "set", crema_message());
  expect(crema_forward_to(opened, "pool2") == CREMA_OK, "forward_to", crema_message());
  expect(crema_blob_info(opened, "pool2", &info) == CREMA_OK && info.count == 1600, "pool2",
         crema_message());
  expect(crema_read(opened, "prob", after, 20) == CREMA_INVALID_ARGUMENT &&
             strstr(crema_message(), "the last pass ended at layer \"pool2\"") != NULL,
         "prob", crema_message());
  crema_close(opened);
  /* Other shapes, and back. */
  crema_input_info(model, 0, &info);
  info.shape[0] = 1;
  expect(crema_reshape(model, &info, 1) == CREMA_OK, "reshape", crema_message());
  expect(crema_set_input(model, "data", values, 784) == CREMA_OK, "set", crema_message());
  expect(crema_forward(model) == CREMA_OK, "forward", crema_message());
  expect(crema_read(model, "prob", after, 10) == CREMA_OK, "read", crema_message());
}

int main(void) {
  size_t i;
  net = read_file("net.prototxt", &net_size);
  weights = read_file("net.caffemodel", &weights_size);
  for (i = 0; i < sizeof values / sizeof *values; ++i) values[i] = (float)(i % 13) / 13;
  if (crema_message()[0] != '\0') return 2;
  if (open_with(NULL) != CREMA_OK) {
    printf("%s\n", crema_message());
    return 2;
  }
  model = opened;
  crema_set_input(model, "data", values, 1568);
  crema_forward(model);
  run_rows();
  run_damages();
  run_rest();
  crema_close(model);
  free(net);
  free(weights);
  if (failures == 0) printf("all errors are reported\n");
  return failures > 0;
}
