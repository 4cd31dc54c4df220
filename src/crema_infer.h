/* Crema's runtime: runs trained nets from C, or from any language that calls C. The library is
 * libcrema_infer, which cannot train. C++ programs may use crema.h and libcrema instead; one process
 * cannot load both libraries.
 *
 *     crema_model *model;
 *     if (crema_open("deploy.prototxt", "net.caffemodel", NULL, &model) != CREMA_OK)
 *       puts(crema_message());
 *
 * Nets: those that `crema deploy` writes, and deploy files of Caffe: inputs in place of data, results
 * in place of losses. Layers for data, losses and accuracies are not in this library.
 *
 * Errors: functions return a crema_status, and crema_message() has the reason as a sentence. After an
 * error the model is as before and can still be used, unless the status is CREMA_NO_DEVICE. No
 * function prints, exits or throws.
 *
 * Threads: a model is used by one thread at a time, which need not be the one that opened it. To run
 * one net in n threads, give each its own crema_share() of it: the weights are stored once. On a CPU
 * each calling thread has its own OpenMP threads, so n busy threads need OMP_NUM_THREADS = cores / n.
 *
 * Values: float32 in row-major order, whatever the net stores. Shapes count the slowest axis first,
 * as Caffe does: samples, channels, height, width. Counts are numbers of values, not bytes.
 *
 * Compatibility: functions, constants and fields are only added as long as the number behind
 * libcrema_infer.so stays the same. */
#ifndef CREMA_INFER_H
#define CREMA_INFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum crema_status {
  CREMA_OK = 0,
  CREMA_INVALID_ARGUMENT = 1, /* a null pointer, an unknown name, a wrong size, a call too early */
  CREMA_INVALID_DATA = 2,     /* a net, weights or a picture cannot be read, or do not fit */
  CREMA_NO_DEVICE = 3,        /* there is no such GPU, or it was lost */
  CREMA_NO_MEMORY = 4,
  CREMA_FAILED = 5 /* anything else */
} crema_status;

/* A net with weights and memory for its blobs. */
typedef struct crema_model crema_model;

enum { CREMA_MAX_AXES = 32 };

/* A blob: an input, an output, or one between. */
typedef struct crema_blob {
  const char *name; /* valid until crema_close() */
  const char *type; /* what it is stored in: "float32", "float16", ...; valid until crema_close() */
  size_t count;     /* of values: the product of the shape */
  int axes;         /* 0: one number */
  int64_t shape[CREMA_MAX_AXES];
} crema_blob;

/* A class and its score. */
typedef struct crema_score {
  int index;
  float score;
  const char *name; /* "": the classes have no names; valid until crema_close() */
} crema_score;

/* The order of a picture's bytes: one, or three of each pixel. */
typedef enum crema_pixels {
  CREMA_PIXELS_GREY = 0,
  CREMA_PIXELS_BGR = 1,
  CREMA_PIXELS_RGB = 2
} crema_pixels;

typedef enum crema_log_level {
  CREMA_LOG_INFO = 0,
  CREMA_LOG_WARNING = 1,
  CREMA_LOG_ERROR = 2
} crema_log_level;

/* Call crema_options_init() first, then change what should differ. */
typedef struct crema_options {
  size_t size; /* sizeof(crema_options) */
  int use_gpu; /* 0: compute on the CPU */
  int gpu;     /* number of the GPU, from 0 */
  int batch;   /* samples per pass; 0: what the net says */
  /* Not 0: every blob can be read, and crema_forward_to() works. It costs memory and speed. */
  int keep_blobs;
  /* Not 0: the same bits on every run, also on a GPU, which is slower there. */
  int deterministic;
  /* "fp32", "tf32", "bf16" or "fp16", the last three on a GPU only. NULL: tf32 on a GPU, else fp32. */
  const char *precision;
  /* How pictures become inputs, where the net's file does not say it. NULL and 0: it does. */
  const char *resize; /* "256x256", width first: the size that pictures get first */
  const char *mean;   /* subtracted: "104,117,123", or a mean file */
  float scale;        /* multiplies values after the mean */
  int rgb;            /* not 0: the net's planes are red, green, blue */
  const char *labels; /* file with the names of the classes, one a line */
  /* Takes the log, line by line, while a function runs; NULL: silent. It must not call the model. */
  void (*log)(void *user, crema_log_level level, const char *line);
  void *log_user; /* passed to `log` */
} crema_options;

/* Defaults; `size` is sizeof(crema_options). */
void crema_options_init(crema_options *options, size_t size);

/* The version of the library, "0.1.0"; valid for ever. */
const char *crema_version(void);

/* GPUs that this process can use; 0 in a build for CPUs. */
int crema_gpu_count(void);

/* The reason of the last error in this thread; valid until its next call. "": there was none. */
const char *crema_message(void);

/* Opens a net file and a .caffemodel or .h5 file of weights. weights_file NULL: the initial values of
 * the net's fillers. options NULL: the defaults. A model must be closed with crema_close(). On an
 * error *model is NULL. */
crema_status crema_open(const char *net_file, const char *weights_file,
                        const crema_options *options, crema_model **model);

/* The same for the text of a net and the content of a .caffemodel in memory: embedded into the
 * program, or decrypted by it. Both may be freed afterwards. weights NULL: as above. */
crema_status crema_open_memory(const char *net, size_t net_size, const void *weights,
                               size_t weights_size, const crema_options *options,
                               crema_model **model);

/* The same net on the same weights, for another thread. `model` must not run meanwhile, and may be
 * closed before the new one. */
crema_status crema_share(crema_model *model, crema_model **shared);

/* NULL is fine. */
void crema_close(crema_model *model);

/* What the caller fills, and the results. Where a result's shape depends on the data (detections), it
 * is the largest one before the first pass, and then that of the last pass. */
int crema_input_count(crema_model *model);
int crema_output_count(crema_model *model);
crema_status crema_input_info(crema_model *model, int index, crema_blob *info);
crema_status crema_output_info(crema_model *model, int index, crema_blob *info);
/* A blob by its name: an output, or with keep_blobs any. */
crema_status crema_blob_info(crema_model *model, const char *name, crema_blob *info);

/* Gives inputs other shapes: `name`, `axes` and `shape` of each of `count` blobs are read. What inputs
 * held is lost. On an error all inputs keep their shapes. */
crema_status crema_reshape(crema_model *model, const crema_blob *inputs, int count);

/* The memory of an input, to be written in place: each pass reads what is there then. At first it has
 * the values set before, or 0. It is valid until crema_set_input(), crema_set_picture(),
 * crema_set_pixels(), crema_reshape() or crema_close(). `count` may be NULL. */
crema_status crema_input(crema_model *model, const char *name, float **values, size_t *count);
/* Copies values into an input, where they stay until set again. */
crema_status crema_set_input(crema_model *model, const char *name, const float *values,
                             size_t count);
/* Makes one sample of an input from the content of an image file: resized, cropped and transformed as
 * the net expects. JPEG needs libcrema_jpeg.so next to this library, other formats and some changes
 * of size libcrema_images.so. All samples must be set before a pass. */
crema_status crema_set_picture(crema_model *model, const char *name, const void *file, size_t size,
                               int sample);
/* The same for pixels: rows from the top, width * height pixels of one or three bytes, as
 * `format`, a value of crema_pixels, says. */
crema_status crema_set_pixels(crema_model *model, const char *name, const void *pixels, int width,
                              int height, int format, int sample);

/* One pass. Error when an input has not been set. */
crema_status crema_forward(crema_model *model);
/* A pass that ends after a layer, or after the last layer that writes a blob of this name. Needs
 * keep_blobs. */
crema_status crema_forward_to(crema_model *model, const char *last);

/* Copies a blob into the caller's memory, which has room for exactly its `count` of values. */
crema_status crema_read(crema_model *model, const char *name, float *values, size_t count);

/* The `count` classes of a sample with the highest scores, the highest first, and how many there are:
 * *found is less than `count` if the net has fewer classes. blob NULL: the output that is a Softmax or
 * Sigmoid, or the only one with a row for each sample. */
crema_status crema_best(crema_model *model, const char *blob, int sample, int count,
                        crema_score *scores, int *found);

/* --- layers of the program's own --- */

typedef struct crema_shape {
  int axes; /* 0: one number */
  int64_t extents[CREMA_MAX_AXES];
} crema_shape;

/* A blob that a layer reads or, as a top, writes: float32 in row-major order, in host memory. */
typedef struct crema_array {
  crema_shape shape;
  size_t count; /* of values */
  float *values;
} crema_array;

/* What a type of layers is made of: these functions. They return NULL, or a message that says what is wrong
 * and stays valid until the thread calls one of them again. Each model has layers of its own, whose functions
 * one thread at a time calls; those of different layers may be called at the same time. */
typedef struct crema_layer_type {
  size_t size;      /* sizeof(crema_layer_type) */
  const char *type; /* as nets name it: layer { type: "Clip01" } */
  void *user;       /* given to create() */
  /* Makes a layer: *layer is what the other functions are given. name: of the layer; text: that of
   * custom_param { text: "..." }, else "". */
  const char *(*create)(void *user, const char *name, const char *text, void **layer);
  void (*destroy)(void *layer); /* may be NULL */
  /* The shape of top `index`, for bottoms of these shapes. */
  const char *(*top_shape)(void *layer, const crema_shape *bottoms, int count, int index,
                           crema_shape *shape);
  /* For a layer with weights, which are those of its name in the .caffemodel: how many blobs there are, and
   * their shapes. */
  int weight_count;
  const char *(*weight_shape)(void *layer, const crema_shape *bottoms, int count, int index,
                              crema_shape *shape);
  /* Computes the tops from the bottoms, as many as the file names, and the weights. */
  const char *(*forward)(void *layer, const crema_array *bottoms, const crema_array *weights,
                         const crema_array *tops);
} crema_layer_type;

/* Sets all fields but `size` to 0. */
void crema_layer_type_init(crema_layer_type *type, size_t size);
/* From now on nets of this process can have layers of the type. Copies what `type` points to. An error for a
 * type that is there already. */
crema_status crema_register_layer(const crema_layer_type *type);

#ifdef __cplusplus
}
#endif

#endif
