// crema_infer.h: the C functions on top of Model.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "crema/setting_names.h"
#include "infer/calls.h"

using namespace crema::c_api;

struct crema_model {
  explicit crema_model(crema::Model opened) : model(std::move(opened)) {}

  // A pointer that stays valid as long as the model.
  const char* kept(const std::string& text) { return texts.insert(text).first->c_str(); }

  crema::Model model;
  std::set<std::string> texts;
};

namespace crema::c_api {

std::string& message() {
  static thread_local std::string text;
  return text;
}

crema_status failed(crema_status status, const char* reason) {
  try {
    message() = reason;
  } catch (...) {
    message().clear();  // no memory for it
  }
  return status;
}

}  // namespace crema::c_api

namespace {

void require_input(crema_model* model, const char* name) {
  require_pointer(model, "model");
  require_pointer(name, "name");
  std::string names;
  for (const crema::BlobInfo& input : model->model.inputs()) {
    if (input.name == name) return;
    names += (names.empty() ? "" : ", ") + input.name;
  }
  throw Misuse("the net has no input \"" + std::string(name) + "\"; its inputs are " + names);
}

std::string text_or_empty(const char* text) { return text ? text : ""; }

// Fields that the caller's header does not have keep their defaults.
crema_options with_defaults(const crema_options* given) {
  crema_options options;
  crema_options_init(&options, sizeof options);
  if (!given) return options;
  require(given->size > 0, "options.size is 0: call crema_options_init() first");
  require(given->size <= sizeof options,
          "options.size is " + std::to_string(given->size) + ", but this library knows " +
              std::to_string(sizeof options) + " bytes: it is older than the program's header");
  std::memcpy(&options, given, given->size);
  return options;
}

crema::ModelOptions model_options(const crema_options* given) {
  crema::name_settings(crema::SettingStyle::c);
  const crema_options options = with_defaults(given);
  require(options.batch >= 0, "options.batch is " + std::to_string(options.batch) +
                                  ": expected a positive number, or 0 for what the net says");
  crema::ModelOptions all;
  if (options.use_gpu) {
    require(options.gpu >= 0,
            "options.gpu is " + std::to_string(options.gpu) + ": GPUs are numbered from 0");
    if (options.gpu >= crema::usable_gpus())
      throw crema::DeviceLost("there is no GPU " + std::to_string(options.gpu) + ": " +
                              std::to_string(crema::usable_gpus()) +
                              " can be used; set use_gpu to 0 to compute on the CPU");
    all.device = crema::ComputeDevice::gpu(options.gpu);
  }
  all.batch = options.batch;
  all.keep_blobs = options.keep_blobs != 0;
  all.deterministic = options.deterministic != 0;
  all.precision = text_or_empty(options.precision);
  all.pictures.resize = text_or_empty(options.resize);
  all.pictures.mean = text_or_empty(options.mean);
  if (options.scale != 0) all.pictures.scale = options.scale;
  all.pictures.rgb = options.rgb != 0;
  all.pictures.labels = text_or_empty(options.labels);
  if (options.log) {
    all.log = [log = options.log, user = options.log_user](crema::LogLevel level,
                                                           std::string_view line) {
      log(user, static_cast<crema_log_level>(level), std::string(line).c_str());
    };
  }
  return all;
}

void describe(crema_model* model, const crema::BlobInfo& blob, crema_blob* info) {
  require(blob.shape.size() <= CREMA_MAX_AXES,
          "blob \"" + blob.name + "\" has " + std::to_string(blob.shape.size()) + " axes; " +
              std::to_string(CREMA_MAX_AXES) + " is the limit");
  info->name = model->kept(blob.name);
  info->type = model->kept(blob.dtype);
  info->axes = static_cast<int>(blob.shape.size());
  info->count = 1;
  for (size_t i = 0; i < blob.shape.size(); ++i) {
    info->shape[i] = blob.shape[i];
    info->count *= static_cast<size_t>(blob.shape[i]);
  }
}

crema_status describe_one(crema_model* model, int index, crema_blob* info, const char* what,
                          std::vector<crema::BlobInfo> (crema::Model::*list)() const) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(info, "info");
    const std::vector<crema::BlobInfo> all = (model->model.*list)();
    require(index >= 0 && index < static_cast<int>(all.size()),
            "there is no " + std::string(what) + " " + std::to_string(index) + ": the net has " +
                std::to_string(all.size()) + ", numbered from 0");
    describe(model, all[static_cast<size_t>(index)], info);
  });
}

int count(crema_model* model, std::vector<crema::BlobInfo> (crema::Model::*list)() const) {
  int found = 0;
  guarded(CREMA_FAILED, [&] {
    require_pointer(model, "model");
    found = static_cast<int>((model->model.*list)().size());
  });
  return found;
}

template <typename Open>
crema_status open_with(crema_model** model, const Open& open_model) noexcept {
  if (model) *model = nullptr;
  return guarded(CREMA_INVALID_DATA, [&] {
    require_pointer(model, "model");
    *model = new crema_model(open_model());
  });
}

}  // namespace

extern "C" {

void crema_options_init(crema_options* options, size_t size) {
  if (!options) return;
  std::memset(static_cast<void*>(options), 0, size);
  options->size = size;
}

const char* crema_version(void) { return CREMA_VERSION; }

int crema_gpu_count(void) {
  int gpus = 0;
  guarded(CREMA_FAILED, [&] { gpus = crema::usable_gpus(); });
  return gpus;
}

const char* crema_message(void) { return message().c_str(); }

crema_status crema_open(const char* net_file, const char* weights_file,
                        const crema_options* options, crema_model** model) {
  return open_with(model, [&] {
    require_pointer(net_file, "net_file");
    crema::ModelOptions all = model_options(options);
    if (weights_file) all.weights = {weights_file};
    return crema::Model(net_file, std::move(all));
  });
}

crema_status crema_open_memory(const char* net, size_t net_size, const void* weights,
                               size_t weights_size, const crema_options* options,
                               crema_model** model) {
  return open_with(model, [&] {
    require_pointer(net, "net");
    crema::ModelOptions all = model_options(options);
    if (weights) all.weights_contents = {{static_cast<const char*>(weights), weights_size}};
    return crema::Model::from_text(std::string(net, net_size), std::move(all));
  });
}

crema_status crema_share(crema_model* model, crema_model** shared) {
  return open_with(shared, [&] {
    require_pointer(model, "model");
    return model->model.shared();
  });
}

void crema_close(crema_model* model) { delete model; }

int crema_input_count(crema_model* model) { return count(model, &crema::Model::inputs); }
int crema_output_count(crema_model* model) { return count(model, &crema::Model::outputs); }

crema_status crema_input_info(crema_model* model, int index, crema_blob* info) {
  return describe_one(model, index, info, "input", &crema::Model::inputs);
}

crema_status crema_output_info(crema_model* model, int index, crema_blob* info) {
  return describe_one(model, index, info, "output", &crema::Model::outputs);
}

crema_status crema_blob_info(crema_model* model, const char* name, crema_blob* info) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(name, "name");
    require_pointer(info, "info");
    describe(model, model->model.blob(name), info);
  });
}

crema_status crema_reshape(crema_model* model, const crema_blob* inputs, int count) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(inputs, "inputs");
    require(count >= 0, "count is " + std::to_string(count) + ": expected a number of inputs");
    std::vector<crema::Model::InputShape> shapes;
    for (int i = 0; i < count; ++i) {
      const crema_blob& input = inputs[i];
      require_input(model, input.name);
      require(input.axes >= 0 && input.axes <= CREMA_MAX_AXES,
              "input \"" + std::string(input.name) + "\" has " + std::to_string(input.axes) +
                  " axes: expected 0 to " + std::to_string(CREMA_MAX_AXES));
      shapes.push_back({input.name, {input.shape, input.shape + input.axes}});
    }
    model->model.reshape(shapes);
  });
}

crema_status crema_input(crema_model* model, const char* name, float** values, size_t* count) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(name, "name");
    require_pointer(values, "values");
    const std::span<float> input = model->model.input(name);
    *values = input.data();
    if (count) *count = input.size();
  });
}

crema_status crema_set_input(crema_model* model, const char* name, const float* values,
                             size_t count) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(name, "name");
    require_pointer(values, "values");
    model->model.set_input(name, {values, count});
  });
}

crema_status crema_set_picture(crema_model* model, const char* name, const void* file, size_t size,
                               int sample) {
  return guarded(CREMA_INVALID_DATA, [&] {
    require_input(model, name);
    require_pointer(file, "file");
    model->model.set_picture_content(name, {static_cast<const char*>(file), size}, sample);
  });
}

crema_status crema_set_pixels(crema_model* model, const char* name, const void* pixels, int width,
                              int height, int format, int sample) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(name, "name");
    require_pointer(pixels, "pixels");
    require(width > 0 && height > 0, "a picture of " + std::to_string(width) + "x" +
                                         std::to_string(height) +
                                         " pixels: expected positive numbers");
    require(format == CREMA_PIXELS_GREY || format == CREMA_PIXELS_BGR || format == CREMA_PIXELS_RGB,
            "format is " + std::to_string(format) + ": expected one of crema_pixels");
    const size_t bytes = static_cast<size_t>(width) * static_cast<size_t>(height) *
                         (format == CREMA_PIXELS_GREY ? 1 : 3);
    model->model.set_picture(name,
                             {width,
                              height,
                              static_cast<crema::PictureFormat>(format),
                              {static_cast<const uint8_t*>(pixels), bytes}},
                             sample);
  });
}

crema_status crema_forward(crema_model* model) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    model->model.forward();
  });
}

crema_status crema_forward_to(crema_model* model, const char* last) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(last, "last");
    model->model.forward_to(last);
  });
}

crema_status crema_read(crema_model* model, const char* name, float* values, size_t count) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(name, "name");
    require_pointer(values, "values");
    model->model.values(name, {values, count});
  });
}

crema_status crema_best(crema_model* model, const char* blob, int sample, int count,
                        crema_score* scores, int* found) {
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(model, "model");
    require_pointer(scores, "scores");
    require_pointer(found, "found");
    const std::vector<crema::ClassScore> best =
        model->model.best(count, sample, text_or_empty(blob));
    for (size_t i = 0; i < best.size(); ++i)
      scores[i] = {best[i].index, best[i].score, model->kept(best[i].name)};
    *found = static_cast<int>(best.size());
  });
}

}  // extern "C"
