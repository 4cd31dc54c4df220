#include "net/preparation.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/databases/records.h"
#include "data/databases/tar/tar_shards.h"
#include "data/transforms/mean.h"
#include "layers/layer_facts.h"
#include "net/net_text.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// As a file in `folder` would name it. Without a file the path is unchanged.
std::string as_seen_from(const std::string& folder, const std::string& path) {
  if (path.empty() || path.front() == '/' || !file_exists(path)) return path;
  std::error_code error;
  const fs::path relative = fs::proximate(path, folder.empty() ? "." : folder, error);
  return error ? path : relative.string();
}

// Height and width.
struct Size {
  int64_t height = 0, width = 0;
};

// The size of all records of the layer's database; 0 x 0: they differ; none: it is not there.
std::optional<Size> size_of_records(const LayerParameter& layer, const std::string& folder) {
  if (layer.type() != "Data") return {};
  constexpr int64_t kLooked = 8;  // images of different sizes differ early
  try {
    const DataParameter& data = layer.data_param();
    const auto source = open_database(find_source(data.source(), folder), data.backend());
    Size size;
    for (int64_t i = 0; i < kLooked && source->record_index(i).epoch == 0; ++i) {
      Record record;
      source->read(i, record.datum);
      decode(record, Color::as_stored);
      if (i > 0 && (record.height != size.height || record.width != size.width)) return Size();
      size = {record.height, record.width};
      if (!record.datum.encoded()) break;
    }
    return size;
  } catch (const Error&) {
    return {};
  }
}

// Only a training run needs these.
void clear_training(TransformationParameter* p) {
  p->clear_mirror();
  p->clear_mirror_alternates();
  p->clear_augment();
  p->clear_distort_param();
  p->clear_expand_param();
  p->clear_emit_constraint();
  p->clear_decoder();
  p->clear_scaled_decoding();
  p->clear_use_gpu_transform();
  p->clear_random_seed();
  p->clear_display();
  p->clear_fix_crop();
  p->clear_more_fix_crop();
  p->clear_multi_scale();
  p->clear_scale_ratios();
  p->clear_max_distort();
}

// A mean of one value per channel needs no file next to the net.
void write_mean_out(TransformationParameter* p, const std::string& folder) {
  if (!p->has_mean_file()) return;
  const std::string path = find_file(p->mean_file(), folder);
  p->set_mean_file(path);
  if (!file_exists(path)) return;
  const Mean mean = read_mean(path);
  if (mean.shape.axes() != 3 || mean.shape[1] * mean.shape[2] != 1) return;
  p->clear_mean_file();
  for (const float value : mean.values) p->add_mean_value(value);
}

// The size of a mean image, if there is one.
std::optional<Size> size_of_mean(const TransformationParameter& p, const std::string& folder) {
  if (!p.has_mean_file()) return {};
  const std::string path = find_file(p.mean_file(), folder);
  if (!file_exists(path)) return {};
  const Mean mean = read_mean(path);
  if (mean.shape.axes() != 3) return {};
  return Size{mean.shape[1], mean.shape[2]};
}

void set_size(const LayerParameter& layer, const Shape& shape, const std::string& folder,
              InputPreparation* made, Log& log) {
  const ImageDataParameter& data = layer.image_data_param();
  const auto resize = [&](int64_t height, int64_t width) {
    made->set_resize_height(static_cast<uint32_t>(height));
    made->set_resize_width(static_cast<uint32_t>(width));
  };
  if (made->resize_height() > 0) return;
  if (data.new_height() > 0 && data.new_width() > 0)
    return resize(data.new_height(), data.new_width());
  if (data.short_side() > 0) return made->set_short_side(data.short_side());
  if (layer.transform_param().has_resize_param()) return;
  if (const auto size = size_of_mean(made->transform_param(), folder))
    return resize(size->height, size->width);
  if (crops(made->transform_param())) {
    if (layer.has_image_data_param()) return;
    if (const auto size = size_of_records(layer, folder)) {
      if (size->height > 0) resize(size->height, size->width);
      return;
    }
    log.warning(
        cat("The size of the training images is unknown, because their database was not found. "
            "Images are resized to ",
            shape[3], "x", shape[2], "; -resize WIDTHxHEIGHT sets another size"));
  }
  resize(shape[2], shape[3]);
}

// A source of an unknown type may read images, too.
bool reads_images(const std::string& type) {
  const SourceContent content = facts_of(type).content;
  return content == SourceContent::images || content == SourceContent::image_pairs ||
         content == SourceContent::none;
}

// Images are decoded blue first. `gray` names the order of the records that it makes grey.
bool red_first(const InputPreparation& input) {
  const TransformationParameter& transform = input.transform_param();
  return transform.has_gray() ? transform.gray() == TransformationParameter::RGB
                              : input.channels() == InputPreparation::RGB;
}

}  // namespace

TransformationParameter image_transform(const InputPreparation& input, const Shape& sample) {
  TransformationParameter parameter = input.transform_param();
  const int64_t height = input.resize_height(), width = input.resize_width();
  if (height > 0 && (height != sample[1] || width != sample[2]) && !crops(parameter) &&
      !parameter.has_resize_param()) {
    parameter.set_crop_h(static_cast<uint32_t>(sample[1]));
    parameter.set_crop_w(static_cast<uint32_t>(sample[2]));
  }
  // `gray` makes one channel of three.
  const int64_t channels = parameter.has_gray() ? 3 : sample[0];
  parameter.set_force_gray(channels == 1);
  parameter.set_force_color(channels == 3);
  parameter.clear_color_order();
  parameter.set_bgr2rgb(red_first(input));
  return parameter;
}

bool crops(const TransformationParameter& p) {
  return p.crop_size() > 0 || p.crop_h() > 0 || p.crop_w() > 0 || p.crop_height() > 0 ||
         p.crop_width() > 0;
}

std::string text_of(const NetPreparation& preparation, const std::string& folder) {
  NetPreparation written = preparation;
  for (InputPreparation& input : *written.mutable_input()) {
    if (!input.transform_param().has_mean_file()) continue;
    std::string* const file = input.mutable_transform_param()->mutable_mean_file();
    *file = as_seen_from(folder, *file);
  }
  if (written.has_labels()) written.set_labels(as_seen_from(folder, written.labels()));
  std::string text;
  for (const std::string& line : split(net_text(written), '\n'))
    if (!line.empty()) text += kPreparationLine + visible(line) + "\n";
  return text;
}

const InputPreparation* find_preparation(const NetPreparation& preparation,
                                         const std::string& input) {
  for (const InputPreparation& one : preparation.input())
    if (one.name() == input) return &one;
  return nullptr;
}

NetPreparation preparation_of(const LayerParameter& layer, const std::string& input,
                              const Shape& shape, const std::string& folder,
                              const PreparationChange& change, Log& log) {
  InputPreparation made;
  made.set_name(input);
  TransformationParameter& transform = *made.mutable_transform_param();
  transform = layer.transform_param();
  clear_training(&transform);
  const bool says = transform.ByteSizeLong() > 0;
  const bool image = shape.axes() == 4 && std::min(shape[2], shape[3]) > 0 &&
                     std::max(shape[2], shape[3]) > 1;  // their product may overflow
  if (image) {
    made.set_channels(InputPreparation::BGR);
    if (shape[1] == 1) made.set_channels(InputPreparation::GRAY);
    const bool turned =
        transform.bgr2rgb() ||
        (transform.has_color_order() && transform.color_order() == TransformationParameter::RGB);
    if (shape[1] == 3 && turned) made.set_channels(InputPreparation::RGB);
    if (shape[1] != 1 && shape[1] != 3) made.clear_channels();
  }
  const bool changed = image && change && change(&made);
  NetPreparation preparation;
  if (!says && !changed && !(image && reads_images(layer.type()))) return preparation;
  write_mean_out(&transform, folder);
  if (image) set_size(layer, shape, folder, &made, log);
  if (transform.ByteSizeLong() == 0) made.clear_transform_param();
  *preparation.add_input() = std::move(made);
  return preparation;
}

InputPreparation assumed_preparation(const std::string& input, const Shape& shape) {
  InputPreparation made;
  made.set_name(input);
  if (shape[1] == 1) made.set_channels(InputPreparation::GRAY);
  if (shape[1] == 3) made.set_channels(InputPreparation::BGR);
  made.set_resize_height(static_cast<uint32_t>(shape[2]));
  made.set_resize_width(static_cast<uint32_t>(shape[3]));
  return made;
}

std::string describe(const InputPreparation& preparation, const Shape& shape) {
  const TransformationParameter& p = preparation.transform_param();
  std::vector<std::string> form = {cat(preparation.name(), ": ", shape.brief())};
  if (preparation.has_channels() && preparation.channels() != InputPreparation::GRAY)
    form.emplace_back(preparation.channels() == InputPreparation::RGB ? "planes R, G, B"
                                                                      : "planes B, G, R");
  if (p.has_gray()) form.emplace_back("grey made of three channels");
  if (preparation.resize_height() > 0)
    form.push_back(cat("from images of ", preparation.resize_width(), "x",
                       preparation.resize_height(), " pixels"));
  if (preparation.short_side() > 0)
    form.push_back(cat("from images whose smaller side is ", preparation.short_side()));
  if (crops(p)) form.emplace_back("the middle of each image");
  std::vector<std::string> numbers, means;
  for (const float value : p.mean_value()) means.push_back(cat(value));
  if (p.has_mean_file()) means.push_back(p.mean_file());
  if (!means.empty()) numbers.push_back("minus " + join(means, ", "));
  if (p.scale() != 1) numbers.push_back(cat("times ", p.scale()));
  return join(form, ", ") + (numbers.empty() ? "" : "; " + join(numbers, ", then "));
}

}  // namespace crema
