#include "data/lists/window_dataset.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

// The part of an image to use, its size after resizing, and its position in the sample.
struct Placement {
  int64_t x1, y1, x2, y2;
  int64_t height, width;
  int64_t top = 0, left = 0, right = 0;
};

// `crop`: the size that options.context refers to; `size`: that region's size after resizing. The
// box with its context may extend beyond the image: that part of the sample stays empty.
Placement placement_of(const ListedWindow& window, const Image& image, const WindowOptions& options,
                       int64_t crop, int64_t size) {
  Placement p{window.x1, window.y1, window.x2, window.y2, size, size};
  if (options.context == 0 && !options.square) return p;
  // In float32 as in R-CNN, because this decides how halves are rounded.
  float half_height = static_cast<float>(p.y2 - p.y1 + 1) / 2,
        half_width = static_cast<float>(p.x2 - p.x1 + 1) / 2;
  const float middle_x = static_cast<float>(p.x1) + half_width,
              middle_y = static_cast<float>(p.y1) + half_height;
  if (options.square) half_height = half_width = std::max(half_height, half_width);
  const float grown = static_cast<float>(crop) / static_cast<float>(crop - 2 * options.context);
  p.x1 = std::llround(middle_x - half_width * grown);
  p.x2 = std::llround(middle_x + half_width * grown);
  p.y1 = std::llround(middle_y - half_height * grown);
  p.y2 = std::llround(middle_y + half_height * grown);
  const float scale_x = static_cast<float>(size) / static_cast<float>(p.x2 - p.x1 + 1),
              scale_y = static_cast<float>(size) / static_cast<float>(p.y2 - p.y1 + 1);
  const auto scaled = [](int64_t pixels, float scale) {
    return std::llround(static_cast<float>(pixels) * scale);
  };
  p.left = scaled(std::max<int64_t>(0, -p.x1), scale_x);
  p.right = scaled(std::max<int64_t>(0, p.x2 - image.width + 1), scale_x);
  p.top = scaled(std::max<int64_t>(0, -p.y1), scale_y);
  p.x1 = std::max<int64_t>(0, p.x1);
  p.y1 = std::max<int64_t>(0, p.y1);
  p.x2 = std::min(image.width - 1, p.x2);
  p.y2 = std::min(image.height - 1, p.y2);
  p.width = scaled(p.x2 - p.x1 + 1, scale_x);
  p.height = scaled(p.y2 - p.y1 + 1, scale_y);
  return p;
}

// The part of an image in a sample, and where it begins in the sample.
struct Shown {
  Image part;  // no rows or columns if no part of the image is left
  int64_t top = 0, left = 0;
};

Shown show(const ListedWindow& window, const Image& image, const WindowOptions& options,
           int64_t crop, int64_t size, bool mirror) {
  const Placement p = placement_of(window, image, options, crop, size);
  require(p.x2 < image.width && p.y2 < image.height && p.x1 >= 0 && p.y1 >= 0, "the window from (",
          window.x1, ", ", window.y1, ") to (", window.x2, ", ", window.y2,
          ") does not lie inside the image of ", image.width, " columns and ", image.height,
          " rows; context_pad takes what lies outside as empty");
  Shown shown{{image.channels, 0, 0, {}}, p.top, mirror ? p.right : p.left};
  const int64_t height = std::min(std::max<int64_t>(1, p.height), size - shown.top),
                width = std::min(std::max<int64_t>(1, p.width), size - shown.left);
  if (height <= 0 || width <= 0) return shown;
  shown.part = cut_image(image, p.y1, p.x1, p.y2 - p.y1 + 1, p.x2 - p.x1 + 1);
  resize_image(height, width, shown.part);
  return shown;
}

}  // namespace

WindowDataset::WindowDataset(std::string path, WindowFile file, ImageReading reading,
                             Transform transform, WindowOptions options)
    : path_(std::move(path)),
      file_(std::move(file)),
      reading_(std::move(reading)),
      transform_(std::move(transform)),
      options_(options) {
  const auto objects =
      static_cast<int64_t>(static_cast<float>(options_.batch_size) * options_.object_share);
  background_ = options_.batch_size - objects;
  require(!options_.in_order || !file_.in_order.empty(), path_, ": has no window");
  require(options_.in_order || objects == 0 || !file_.objects.empty(), path_,
          ": has no window of an object, but ", objects, " of a batch's ", options_.batch_size,
          " must show one; lower fg_threshold or fg_fraction, or set shuffle: false to take "
          "windows as they are listed");
  require(options_.in_order || background_ == 0 || !file_.background.empty(), path_,
          ": has no window of background, but ", background_, " of a batch's ", options_.batch_size,
          " must show it; raise bg_threshold or fg_fraction, or set shuffle: false to take "
          "windows as they are listed");
  reading_.color = file_.images[0].channels == 1 ? Color::gray : Color::color;
  const Shape& mean = transform_.mean_shape();
  const int64_t size = transform_.numbers().crop_height;
  require(size > 0 && size == transform_.numbers().crop_width,
          "the size of the samples is missing: give transform_param a crop_size");
  require(2 * options_.context < size, "context_pad is ", options_.context,
          ", which leaves nothing of a crop of ", size, "x", size);
  constexpr int64_t kMaxSide = 1 << 15;  // kMaxPixelsEver of a square
  require(options_.mask_size <= kMaxSide, "a mask of ", options_.mask_size, "x", options_.mask_size,
          " pixels is larger than any picture; ", kMaxSide, " is the longest side");
  require(!transform_.augmentation().any(),
          "transform_param changes the size or the colours of images; windows are resized to "
          "crop_size and mirrored, nothing else");
  require(!transform_.changes().moves(),
          "augment moves pixels (resized_crop, flip, rotate, shear, perspective or rand_augment), "
          "but what a window shows is listed; color, gray, blur, jpeg, noise and cutout change it, "
          "and mirror mirrors it");
  transform_.check_order_of_decoded();
  const int64_t channels = transform_.channels(file_.images[0].channels);
  require(transform_.mean_image().empty() ||
              (mean[0] == channels && mean[1] >= size && mean[2] >= size),
          "the mean is ", mean.brief(), ", but the windows are ", channels, "x", size, "x", size,
          "; it must not be smaller");
  require(transform_.mean_values().size() <= 1 ||
              static_cast<int64_t>(transform_.mean_values().size()) == channels,
          "the images have ", channels, " channels, but there are ",
          transform_.mean_values().size(), " mean_value; give one, or one a channel");
  for (const ListedWindowImage& image : file_.images) {
    if (options_.cache) cached_.push_back(read_file(reading_.find(image.path)));
  }
}

const ListedWindow& WindowDataset::window(const SampleIndex& sample_index) const {
  if (options_.in_order) return file_.in_order[sample_index.record_index.index];
  // With one batch per rank, every batch has objects.
  const int64_t place = (options_.first_in_batch + sample_index.in_batch) % options_.batch_size;
  const std::vector<ListedWindow>& from = place < background_ ? file_.background : file_.objects;
  return from[TransformParams::pick(rng(sample_index).v[1], static_cast<int64_t>(from.size()))];
}

std::string WindowDataset::describe(const SampleIndex& sample_index) const {
  return cat(path_, ":", window(sample_index).line);
}

void WindowDataset::load(const SampleIndex& sample_index, Sample& sample) const {
  const int64_t index = window(sample_index).image;
  const ListedWindowImage& image = file_.images[index];
  if (options_.cache) {
    reading_.decode(image.path, cached_[index], reading_.color, Interpolation::linear,
                    sample.record.image);
  } else {
    reading_.read(image.path, reading_.color, Interpolation::linear, sample.record.image);
  }
  const TransformParams& numbers = transform_.numbers();
  sample.shape = {transform_.channels(image.channels), numbers.crop_height, numbers.crop_width};
  const int64_t side = options_.mask_size;
  sample.label_shape = side > 0 ? Shape{masks() * side * side + 1} : Shape();
}

void WindowDataset::write_masks(const ListedWindow& window, const Image& image, bool mirror,
                                float* out) const {
  const int64_t side = options_.mask_size;
  Image mask;
  for (const std::string& path : file_.images[window.image].masks) {
    reading_.read(path, Color::gray, Interpolation::linear, mask);
    require(mask.height == image.height && mask.width == image.width, "the image is ", image.height,
            "x", image.width, ", but its mask ", path, " is ", mask.height, "x", mask.width,
            "; they must have one size");
    const Shown shown =
        show(window, mask, options_, transform_.numbers().crop_height, side, mirror);
    const Image& part = shown.part;
    for (int64_t y = 0; y < part.height; ++y) {
      for (int64_t x = 0; x < part.width; ++x) {
        const int64_t column = mirror ? part.width - 1 - x : x;
        out[(y + shown.top) * side + x + shown.left] =
            static_cast<float>(part.pixels[y * part.width + column]) / 255;
      }
    }
    out += side * side;
  }
}

void WindowDataset::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  const ListedWindow& cut = window(sample_index);
  const TransformParams& numbers = transform_.numbers();
  const int64_t size = numbers.crop_height;
  const Image& image = sample.record.image;
  const bool mirror = numbers.mirror && (rng(sample_index).v[0] & 1) != 0;
  Shown shown = show(cut, image, options_, size, size, mirror);
  Image& part = shown.part;
  if (!part.pixels.empty() && transform_.changes().any()) {
    Rng drawn = rng_of(sample_index);
    transform_.changes().apply(part, drawn);
  }

  const Shape& mean = transform_.mean_shape();
  const std::vector<float>&mean_image = transform_.mean_image(),
        &mean_values = transform_.mean_values();
  const int64_t rows_before = mean_image.empty() ? 0 : (mean[1] - size) / 2,
                columns_before = mean_image.empty() ? 0 : (mean[2] - size) / 2;
  std::fill_n(data, sample.shape.count(), 0.f);
  const bool gray = transform_.makes_gray(part.channels);
  for (int64_t c = 0; c < transform_.channels(part.channels); ++c) {
    for (int64_t y = 0; y < part.height; ++y) {
      for (int64_t x = 0; x < part.width; ++x) {
        const int64_t column = mirror ? part.width - 1 - x : x;
        const uint8_t* const pixel = part.pixels.data() + (y * part.width + column) * part.channels;
        float value = gray ? numbers.gray_of(pixel[0], pixel[1], pixel[2]) : pixel[c];
        if (!mean_image.empty()) {
          value -= mean_image[(c * mean[1] + y + rows_before + shown.top) * mean[2] + x +
                              columns_before + shown.left];
        } else if (!mean_values.empty()) {
          value -= mean_values[mean_values.size() == 1 ? 0 : c];
        }
        data[(c * size + y + shown.top) * size + x + shown.left] = value * numbers.scale;
      }
    }
  }
  sample.labels.assign(static_cast<size_t>(sample.label_shape.count()), 0.f);
  sample.labels[0] = static_cast<float>(cut.label);
  if (options_.mask_size > 0) write_masks(cut, image, mirror, sample.labels.data() + 1);
}

}  // namespace crema
