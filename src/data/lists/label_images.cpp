#include "data/lists/label_images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

using Column = LabelImageOptions::Column;

std::vector<ListedImage> read_pairs(const std::string& list, Column second) {
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

int64_t scaled(int64_t side, float scale) {
  // Sizes beyond any image are left for resize_image to refuse.
  constexpr float kMax = 1e9f;
  return std::max<int64_t>(1, std::lround(std::min(static_cast<float>(side) * scale, kMax)));
}

// Used for `balance`.
bool one_value_prevails(const Image& labels) {
  constexpr double kShare = 0.8;
  int64_t counts[256] = {};
  for (const uint8_t label : labels.pixels) ++counts[label];
  return static_cast<double>(*std::max_element(counts, counts + 256)) >
         kShare * static_cast<double>(labels.pixels.size());
}

}  // namespace

LabelImages::LabelImages(const std::string& list, ImageReading reading, Transform transform,
                         LabelImageOptions options)
    : list_(list),
      images_(read_pairs(list, options.second)),
      reading_(std::move(reading)),
      transform_(std::move(transform)),
      options_(std::move(options)) {
  transform_.check_order_of_decoded();
  require(
      !transform_.augmentation().any(),
      "transform_param changes the images (resize_param, distort_param, ...), but not their label "
      "images; give ",
      options_.stride_crop ? "scale_ratios" : "scale_factors, or new_height and new_width");
  require(transform_.numbers().pad == 0 || transform_.numbers().reflects,
          "transform_param has pad, but what labels of the added pixels are is not known; "
          "pad_mode: REFLECT shows known ones");
  for (const float scale : options_.scales)
    require(scale > 0, "scale_factors has ", scale, "; an image is resized by factors above 0");
  if (const std::optional<StrideCrop>& crop = options_.stride_crop) {
    require(
        0 < crop->min_scale && crop->min_scale <= crop->max_scale && std::isfinite(crop->max_scale),
        "scale_ratios are ", crop->min_scale, " and ", crop->max_scale,
        "; an image is resized by a factor between two, above 0, the smaller one first");
  }
  ignored_pixel_.assign(3, static_cast<uint8_t>(options_.ignore));
  // Padding becomes 0 when the mean is subtracted.
  for (size_t c = 0; c < 3; ++c) {
    const std::vector<float>& means = transform_.mean_values();
    const float mean = means.empty() ? 0 : means[means.size() == 1 ? 0 : c % means.size()];
    mean_pixel_.push_back(static_cast<uint8_t>(std::clamp(std::round(mean), 0.f, 255.f)));
  }
}

std::string LabelImages::describe(const SampleIndex& sample_index) const {
  return cat(list_, ":", images_[sample_index.record_index.index].line);
}

std::string LabelImages::how_to_equalize() const {
  if (options_.stride_crop) return "give transform_param a crop_size, or set batch_size: 1";
  return "give new_height and new_width, give transform_param a crop_size, or set batch_size: 1";
}

void LabelImages::read_one(int64_t key, const std::string& path, Color color,
                           Interpolation interpolation, Image& image) const {
  if (cache_ && cache_->find(key, image)) return;
  reading_.read(path, color, interpolation, image);
  if (cache_) cache_->keep(key, image);
}

void LabelImages::read(const SampleIndex& sample_index, Image& image, Image& labels) const {
  const auto [epoch, index] = sample_index.record_index;
  const ListedImage& listed = images_[index];
  if (cache_) cache_->begin_sample(epoch);
  read_one(2 * index, listed.path, reading_.color, Interpolation::linear, image);
  if (options_.second == Column::image) {
    read_one(2 * index + 1, listed.label_path, options_.color ? Color::color : Color::gray,
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
          " is not an integer from 0 to 255");
  labels = {1, image.height, image.width, {}};
  labels.pixels.assign(static_cast<size_t>(image.height * image.width),
                       static_cast<uint8_t>(label));
}

void LabelImages::rescale(const SampleIndex& sample_index, Image& image, Image& labels) const {
  if (options_.scales.empty()) return;
  const float scale = options_.scales[TransformParams::pick(
      sample_index.draw().words.v[3], static_cast<int64_t>(options_.scales.size()))];
  const int64_t height = scaled(image.height, scale), width = scaled(image.width, scale);
  resize_image(height, width, image);
  resize_image(height, width, labels, Interpolation::nearest);
}

void LabelImages::change(const SampleIndex& sample_index, Image& image, Image& labels) const {
  const Changes& changes = transform_.changes();
  if (!changes.any()) return;
  // The generator of take_part() begins where this one does.
  Rng rng(rng_of(sample_index).branch());
  const Change drawn = changes.draw(image.height, image.width, rng);
  changes.apply(drawn, image, rng);
  labels =
      warp_labels(labels, drawn.warp, options_.edges ? std::vector<uint8_t>{0} : ignored_pixel_);
}

void LabelImages::pad(Image& image, const std::vector<uint8_t>& pixel) const {
  const TransformParams& numbers = transform_.numbers();
  const int64_t height = std::max(image.height, numbers.crop_height),
                width = std::max(image.width, numbers.crop_width);
  if (!options_.pad || (height == image.height && width == image.width)) return;
  image = extend_image(image, 0, 0, height, width, pixel.data());
}

// The part of the image in a sample, after resizing.
struct LabelImages::Part {
  int64_t height, width;  // size after resizing
  int64_t top = 0, left = 0, rows = 0, columns = 0;
};

LabelImages::Part LabelImages::draw_part(Rng& rng, const StrideCrop& crop,
                                         const Image& image) const {
  const TransformParams& numbers = transform_.numbers();
  const float scale = rng.between(crop.min_scale, crop.max_scale);
  Part part{scaled(image.height, scale), scaled(image.width, scale)};
  // With a crop given, pad() enlarges the image to it.
  const bool given = numbers.crop_height > 0;
  const int64_t height = given ? std::max(part.height, numbers.crop_height) : part.height,
                width = given ? std::max(part.width, numbers.crop_width) : part.width,
                stride = crop.stride;
  part.rows = given ? numbers.crop_height : std::min(height / stride * stride, crop.max_height);
  part.columns = given ? numbers.crop_width : std::min(width / stride * stride, crop.max_width);
  require(part.rows > 0 && part.columns > 0, "the image is ", height, "x", width,
          crop.min_scale < crop.max_scale ? ", resized by a drawn factor" : "",
          ": smaller than the stride of ", stride, ", of which its crop is a multiple");
  const auto crop_offset = [&](int64_t spare) {
    return numbers.training ? rng.pick(spare + 1) : spare / 2;
  };
  part.top = crop_offset(height - part.rows);
  part.left = crop_offset(width - part.columns);
  return part;
}

void LabelImages::take_part(const SampleIndex& sample_index, const StrideCrop& crop, Image& image,
                            Image& labels) const {
  constexpr int kMaxRetries = 10;
  Rng rng = rng_of(sample_index);
  const auto shown = [&](const Part& part, const Image& whole, Interpolation interpolation,
                         const std::vector<uint8_t>& outside) {
    Image resized = whole;
    resize_image(part.height, part.width, resized, interpolation);
    pad(resized, outside);
    return cut_image(resized, part.top, part.left, part.rows, part.columns);
  };
  for (int retries = 0;; ++retries) {
    const Part part = draw_part(rng, crop, image);
    Image drawn = shown(part, labels, Interpolation::nearest, ignored_pixel_);
    if (crop.balance && retries < kMaxRetries && one_value_prevails(drawn)) continue;
    image = shown(part, image, Interpolation::linear, mean_pixel_);
    labels = std::move(drawn);
    return;
  }
}

void LabelImages::load(const SampleIndex& sample_index, Sample& sample) const {
  Image& image = sample.record.image;
  read(sample_index, image, sample.label_image);
  sample.stored_height = image.height;
  sample.stored_width = image.width;
  if (options_.stride_crop) {
    change(sample_index, image, sample.label_image);
    take_part(sample_index, *options_.stride_crop, image, sample.label_image);
  } else {
    rescale(sample_index, image, sample.label_image);
    change(sample_index, image, sample.label_image);
    pad(image, mean_pixel_);
    pad(sample.label_image, ignored_pixel_);
  }
  show_image(sample.record);
  sample.shape = transform_.output(sample.record.shape());
  const int64_t height = sample.shape[1] / options_.shrink,
                width = sample.shape[2] / options_.shrink;
  require(height > 0 && width > 0, "an image of ", sample.shape[1], "x", sample.shape[2],
          " leaves no label map after a division by ", options_.shrink);
  sample.label_shape = {sample.label_image.channels, height, width};
}

void LabelImages::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  const Image& labels = sample.label_image;
  const TransformParams& numbers = transform_.numbers();
  const Cut cut = numbers.cut(labels.height, labels.width, sample_index.draw());
  const int64_t height = sample.label_shape[1], width = sample.label_shape[2];
  sample.labels.resize(sample.label_shape.count());
  float* to = sample.labels.data();
  for (int64_t c = 0; c < labels.channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        // The nearest pixel as OpenCV counts; equal to x and y without shrinking.
        const int64_t down = y * sample.shape[1] / height,
                      right = (cut.mirror ? width - 1 - x : x) * sample.shape[2] / width;
        const int64_t row = numbers.behind_padding(cut.top + down, labels.height);
        const int64_t column = numbers.behind_padding(cut.left + right, labels.width);
        const int value = labels.pixels[(row * labels.width + column) * labels.channels + c];
        *to++ = static_cast<float>(options_.edges ? value >= 128 : value / options_.divider);
      }
    }
  }
}

}  // namespace crema
