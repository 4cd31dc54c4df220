#include "tools/db/peek_batch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/find_database.h"
#include "data/transforms/mean.h"
#include "net/sources/source_files.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"

namespace crema {
namespace {

// The net with nothing but its first data layer.
NetInput data_layer_of(NetInput input, const std::string& model, const std::string& database) {
  const NetParameter& net = input.net;
  int first = 0;
  while (first < net.layer_size() &&
         (net.layer(first).bottom_size() > 0 || net.layer(first).type() == "Input"))
    ++first;
  require(first < net.layer_size() && net.input_size() == 0, model, ": has no layer that ",
          "reads data in this phase; -phase TRAIN or TEST chooses another, -stage, too");
  LayerParameter layer = net.layer(first);
  const std::string at = input.options.where ? input.options.where(first) : model;
  if (!database.empty()) {
    require(layer.has_data_param(), at, ": layer \"", layer.name(), "\" reads no database; leave ",
            database, " out to see what it reads");
    layer.mutable_data_param()->set_source(std::filesystem::absolute(database));
    layer.mutable_data_param()->set_backend(find_database(database).backend);
  }
  input.net.clear_layer();
  *input.net.add_layer() = std::move(layer);
  input.options.where = [at](int) { return at; };
  input.options.keep_blobs = true;
  return input;
}

// How to convert values back to those of the image, for each channel.
struct Undoing {
  float scale = 1;
  std::vector<float> mean;  // one, or one per channel
  bool known = false;       // otherwise the values are stretched
};

Undoing undoing_of(const LayerParameter& layer, const std::string& folder) {
  const TransformationParameter& transform = layer.transform_param();
  Undoing undoing;
  if (transform.scale() != 0) undoing.scale = transform.scale();
  undoing.mean.assign(transform.mean_value().begin(), transform.mean_value().end());
  if (transform.has_mean_file())
    undoing.mean = read_mean(find_file(transform.mean_file(), folder)).channels();
  undoing.known = !undoing.mean.empty() || transform.scale() != 1;
  if (undoing.mean.empty()) undoing.mean = {0};
  return undoing;
}

// As samples x channels x height x width, of which there may be fewer: a row of values is so many
// channels of 1 x 1.
struct BatchPlanes {
  std::vector<float> values;
  int64_t samples, channels, height, width;
};

BatchPlanes planes_of(Net& net, const std::string& blob) {
  const Tensor tensor = net.blob(blob);
  const Shape& shape = tensor.shape();
  const int axes = shape.axes();
  BatchPlanes planes{to_floats(net.context(), tensor), axes > 0 ? shape[0] : 1, 1, 1, 1};
  if (axes == 2) planes.channels = shape[1];
  if (axes < 3) return planes;
  planes.width = shape[axes - 1];
  planes.height = shape[axes - 2];
  planes.channels = axes > 3 ? shape.count(1, axes - 2) : 1;  // the frames of a clip, too
  return planes;
}

// Sets the values back, and tells which of them are black and white.
std::pair<float, float> undo(const Undoing& undoing, BatchPlanes& planes) {
  const int64_t plane = planes.height * planes.width;
  for (size_t i = 0; i < planes.values.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / plane % planes.channels);
    planes.values[i] =
        planes.values[i] / undoing.scale + undoing.mean[channel % undoing.mean.size()];
  }
  if (undoing.known) return {0, 255};
  const auto [low, high] = std::minmax_element(planes.values.begin(), planes.values.end());
  if (*low >= 0 && *high <= 255 && *high > 1) return {0, 255};
  return {*low, *high};
}

// A class; 0 if it is not one.
int class_in(float label) { return std::abs(label) <= 1 << 24 ? static_cast<int>(label) : 0; }

// Rows of item, class, instance, xmin, ymin, xmax, ymax, difficult.
void add_boxes(const std::vector<float>& rows, const ClassNames& names,
               std::vector<SheetCell>& cells) {
  constexpr size_t kRow = 8;
  for (size_t at = 0; at + kRow <= rows.size(); at += kRow) {
    const float* row = rows.data() + at;
    if (row[0] < 0 || row[0] >= static_cast<float>(cells.size())) continue;
    const int label = class_in(row[1]);
    cells[static_cast<size_t>(row[0])].boxes.push_back(
        {row[3], row[4], row[5], row[6], label, class_text(label, names)});
  }
}

void add_masks(const BatchPlanes& labels, std::vector<SheetCell>& cells) {
  const auto plane = static_cast<size_t>(labels.height * labels.width);
  for (size_t i = 0; i < cells.size(); ++i) {
    const float* const first = labels.values.data() + i * plane;
    std::vector<int> classes;
    for (size_t at = 0; at < plane; ++at) classes.push_back(class_in(first[at]));
    lay_labels_over(classes, cells[i].picture);
  }
}

// For mixed samples, the largest weight first: "cat 70% dog 30%".
std::string text_of_shares(const float* shares, int classes, const ClassNames& names) {
  constexpr size_t kShown = 3;
  std::vector<std::pair<int, int>>
      percents;  // and the class, so that the first of equal ones leads
  for (int k = 0; k < classes; ++k) {
    const int percent = static_cast<int>(std::lround(100 * shares[k]));
    if (percent > 0) percents.emplace_back(-percent, k);
  }
  std::sort(percents.begin(), percents.end());
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(kShown, percents.size()); ++i)
    parts.push_back(cat(class_text(percents[i].second, names), " ", -percents[i].first, "%"));
  return join(parts, " ");
}

void add_labels(Net& net, const LayerParameter& layer, const std::string& blob,
                const BatchPlanes& data, const ClassNames& names, std::vector<SheetCell>& cells) {
  const BatchPlanes labels = planes_of(net, blob);
  const bool boxes = layer.type() == "AnnotatedData" && labels.width == 8;
  if (boxes) return add_boxes(labels.values, names, cells);
  if (labels.samples != data.samples) return;
  const auto pixels = static_cast<size_t>(data.height * data.width);
  const size_t each = labels.values.size() / cells.size();
  const bool masks = labels.height == data.height && labels.width == data.width &&
                     labels.channels == 1 && pixels > 1;
  if (masks && cells[0].picture.width == data.width) return add_masks(labels, cells);
  const AugmentParameter& augment = layer.transform_param().augment();
  if ((augment.has_mixup() || augment.has_cutmix()) &&
      each == static_cast<size_t>(augment.classes())) {
    for (size_t i = 0; i < cells.size(); ++i) {
      cells[i].picture.caption =
          text_of_shares(labels.values.data() + i * each, augment.classes(), names);
    }
    return;
  }
  constexpr size_t kShown = 6;
  if (each > kShown) return;
  for (size_t i = 0; i < cells.size(); ++i) {
    std::string& caption = cells[i].picture.caption;
    for (size_t k = 0; k < each; ++k) {
      const float label = labels.values[i * each + k];
      const bool number = each > 1 || static_cast<float>(class_in(label)) != label;
      caption += caption.empty() ? "" : " ";
      caption += number ? cat(label) : class_text(class_in(label), names);
    }
  }
}

}  // namespace

std::vector<SheetCell> peek_batch(const std::string& database, const PeekOptions& options,
                                  const PeekFlags& flags, ProgramLog& log) {
  const NetInput input =
      data_layer_of(read_model(log, ModelFlags::without<"assume", "off", "recompute">(flags),
                               phase_of_flag(flags.phase, TRAIN)),
                    flags.model, database);
  const LayerParameter& layer = input.net.layer(0);
  const std::unique_ptr<Context> context = make_context(log, {});
  Net net(*context, input.net, input.options);
  net.forward(0);
  // HDF5Data names its datasets as it likes: what has the most axes is the picture.
  std::string picture = layer.top(0);
  for (const std::string& top : layer.top()) {
    if (net.blob(top).shape().axes() > net.blob(picture).shape().axes()) picture = top;
  }
  BatchPlanes data = planes_of(net, picture);
  const auto [low, high] = undo(undoing_of(layer, input.options.folder), data);
  std::vector<SheetCell> cells(static_cast<size_t>(data.samples));
  const auto each = static_cast<int64_t>(data.values.size()) / data.samples;
  for (int64_t i = 0; i < data.samples; ++i) {
    cells[static_cast<size_t>(i)].picture =
        picture_of_planes(data.values.data() + i * each, data.channels, data.height, data.width,
                          low, high, options.red_first);
  }
  const ClassNames names =
      options.names.empty() ? class_names_of(input.net, input.options.folder) : options.names;
  for (const std::string& top : layer.top()) {
    if (top != picture) add_labels(net, layer, top, data, names, cells);
  }
  return cells;
}

}  // namespace crema
