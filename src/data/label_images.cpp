#include "data/label_images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

using Column = LabelImageOptions::Column;

std::vector<ListedImage> read_list(const std::string& list, Column second) {
  switch (second) {
    case Column::image:
      return read_pair_list(list);
    case Column::number:
      return read_labelled_list(list);
    case Column::none:
      return read_path_list(list);
  }
  return {};
}

}  // namespace

LabelImages::LabelImages(const std::string& list, ImageReading reading, Transform transform,
                         LabelImageOptions options)
    : list_(list),
      images_(read_list(list, options.second)),
      reading_(std::move(reading)),
      transform_(std::move(transform)),
      options_(std::move(options)) {
  require(
      !transform_.augmentation().any(),
      "transform_param changes the images (resize_param, distort_param, ...), but not their label "
      "images; give scale_factors, or new_height and new_width");
  for (const float scale : options_.scales)
    require(scale > 0, "scale_factors has ", scale, "; an image is resized by factors above 0");
  // Padding becomes 0 when the mean is subtracted.
  for (size_t c = 0; c < 3; ++c) {
    const std::vector<float>& means = transform_.mean_values();
    const float mean = means.empty() ? 0 : means[means.size() == 1 ? 0 : c % means.size()];
    mean_pixel_.push_back(static_cast<uint8_t>(std::clamp(std::round(mean), 0.f, 255.f)));
  }
}

std::string LabelImages::describe(const Turn& turn) const {
  return cat(list_, ":", images_[turn.place.index].line);
}

std::string LabelImages::how_to_equalize() const {
  return "give new_height and new_width, give transform_param a crop_size, or set batch_size: 1";
}

void LabelImages::read(const ListedImage& listed, Image& image, Image& labels) const {
  reading_.read(listed.path, reading_.color, Interpolation::linear, image);
  if (options_.second == Column::image) {
    reading_.read(listed.label_path, options_.color ? Color::color : Color::gray,
                  options_.edges ? Interpolation::linear : Interpolation::nearest, labels);
    if (labels.height != image.height || labels.width != image.width) {
      fail("the image is ", image.height, "x", image.width, ", but its label image ",
           listed.label_path, " is ", labels.height, "x", labels.width,
           "; they must have one size, or be resized by new_height and new_width");
    }
    return;
  }
  const float label =
      options_.second == Column::number ? listed.labels[0] : static_cast<float>(options_.ignore);
  require(label >= 0 && label <= 255 && label == std::trunc(label), "the label ", label,
          " is no integer from 0 to 255");
  labels = {1, image.height, image.width, {}};
  labels.pixels.assign(static_cast<size_t>(image.height * image.width),
                       static_cast<uint8_t>(label));
}

void LabelImages::rescale(const Turn& turn, Image& image, Image& labels) const {
  if (options_.scales.empty()) return;
  const float scale = options_.scales[TransformNumbers::pick(
      turn.draws().v[3], static_cast<int64_t>(options_.scales.size()))];
  const auto scaled = [&](int64_t side) {
    return std::max<int64_t>(1, std::lround(static_cast<float>(side) * scale));
  };
  const int64_t height = scaled(image.height), width = scaled(image.width);
  resize_image(height, width, image);
  resize_image(height, width, labels, Interpolation::nearest);
}

void LabelImages::pad(Image& image, Image& labels) const {
  const TransformNumbers& numbers = transform_.numbers();
  const int64_t height = std::max(image.height, numbers.crop_height),
                width = std::max(image.width, numbers.crop_width);
  if (!options_.pad || (height == image.height && width == image.width)) return;
  const uint8_t ignore[3] = {static_cast<uint8_t>(options_.ignore),
                             static_cast<uint8_t>(options_.ignore),
                             static_cast<uint8_t>(options_.ignore)};
  image = extend_image(image, 0, 0, height, width, mean_pixel_.data());
  labels = extend_image(labels, 0, 0, height, width, ignore);
}

void LabelImages::load(const Turn& turn, Sample& sample) const {
  Image& image = sample.record.image;
  read(images_[turn.place.index], image, sample.label_image);
  sample.stored_height = image.height;
  sample.stored_width = image.width;
  rescale(turn, image, sample.label_image);
  pad(image, sample.label_image);
  show_image(sample.record);
  sample.shape = transform_.output(sample.record.shape());
  sample.label_shape = {sample.label_image.channels, sample.shape[1], sample.shape[2]};
}

void LabelImages::write(const Turn& turn, Sample& sample, float* data) const {
  transform_.apply(sample.record, turn.draws(), data);
  const Image& labels = sample.label_image;
  const Cut cut = transform_.numbers().cut(labels.height, labels.width, turn.draws());
  const int64_t height = sample.shape[1], width = sample.shape[2];
  sample.labels.resize(sample.label_shape.count());
  float* to = sample.labels.data();
  for (int64_t c = 0; c < labels.channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t column = cut.left + (cut.mirror ? width - 1 - x : x);
        const int value =
            labels.pixels[((cut.top + y) * labels.width + column) * labels.channels + c];
        *to++ = static_cast<float>(options_.edges ? value >= 128 : value / options_.divider);
      }
    }
  }
}

}  // namespace crema
