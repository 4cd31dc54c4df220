#include "data/transforms/transform.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/transforms/mean.h"

namespace crema {
namespace {

// Writes one row (or several contiguous ones). `step`: from one value of a channel to the next.
// Subtract gives value i minus the mean. simdlen(16) also vectorizes narrow rows; the vectors of 64
// that the byte type would allow leave those to scalar code.
template <typename In, typename Subtract>
void write_run(const In* in, int64_t step, int64_t count, Subtract subtract, float scale,
               bool mirror, float* out) {
  if (mirror) {
    const In* last = in + (count - 1) * step;
    if (step == 1) {
#pragma omp simd simdlen(16)
      for (int64_t i = 0; i < count; ++i)
        out[i] = subtract(static_cast<float>(last[-i]), count - 1 - i) * scale;
    } else {
      for (int64_t i = 0; i < count; ++i)
        out[i] = subtract(static_cast<float>(last[-i * step]), count - 1 - i) * scale;
    }
  } else if (step == 1) {
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < count; ++i) out[i] = subtract(static_cast<float>(in[i]), i) * scale;
  } else {
    for (int64_t i = 0; i < count; ++i)
      out[i] = subtract(static_cast<float>(in[i * step]), i) * scale;
  }
}

struct Window {
  int64_t top, left, height, width;
  bool mirror, flow;
};

// The layout of an image's values: `part` of its rows and columns is available, the mean has all.
struct Layout {
  int64_t channels, height, width;
  bool interleaved;
  ImagePart part;
};

template <typename In>
void write(const Layout& record, const In* in, const Window& window, const float* mean_image,
           const std::vector<float>& mean_values, float scale, float* out) {
  const ImagePart& part = record.part;
  const int64_t step = record.interleaved ? record.channels : 1;
  const int64_t plane = record.height * record.width, part_plane = part.height * part.width;
  // Without cropping and mirroring, all rows of a channel are contiguous.
  const bool whole =
      window.width == part.width && !window.mirror && (!mean_image || part.width == record.width);
  const int64_t runs = whole ? 1 : window.height,
                count = whole ? window.height * window.width : window.width;
  for (int64_t c = 0; c < record.channels; ++c) {
    for (int64_t y = 0; y < runs; ++y, out += count) {
      const int64_t at = (window.top - part.top + y) * part.width + window.left - part.left;
      const int64_t in_mean = c * plane + (window.top + y) * record.width + window.left;
      const In* from = record.interleaved ? in + at * step + c : in + c * part_plane + at;
      if (window.mirror && window.flow && c % 2 == 0) {
        const float* image = mean_image ? mean_image + in_mean : nullptr;
        const float mean = mean_values.empty() ? 0 : mean_values[mean_values.size() == 1 ? 0 : c];
        write_run(
            from, step, count,
            [image, mean](float x, int64_t i) { return 255 - x - (image ? image[i] : mean); },
            scale, true, out);
      } else if (mean_image) {
        const float* mean = mean_image + in_mean;
        write_run(
            from, step, count, [mean](float x, int64_t i) { return x - mean[i]; }, scale,
            window.mirror, out);
      } else if (!mean_values.empty()) {
        const float mean = mean_values[mean_values.size() == 1 ? 0 : c];
        write_run(
            from, step, count, [mean](float x, int64_t) { return x - mean; }, scale, window.mirror,
            out);
      } else {
        write_run(
            from, step, count, [](float x, int64_t) { return x; }, scale, window.mirror, out);
      }
    }
  }
}

// Three planes or interleaved channels of `count` values, as one of grey.
template <typename In>
void write_gray(const TransformParams& numbers, const In* in, int64_t count, bool interleaved,
                float* out) {
  const int64_t step = interleaved ? 3 : 1, next = interleaved ? 1 : count;
  const auto value = [&](int64_t at) { return static_cast<float>(in[at]); };
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * step;
    out[i] = numbers.gray_of(value(at), value(at + next), value(at + 2 * next));
  }
}

// A window of an image with padding around it; `in` has the planes of its part.
void write_padded(const TransformParams& numbers, const Layout& image, const Window& window,
                  const float* in, float* out) {
  std::vector<int64_t> columns(static_cast<size_t>(window.width));
  for (int64_t x = 0; x < window.width; ++x) {
    const int64_t shown = window.mirror ? window.width - 1 - x : x;
    columns[x] = numbers.behind_padding(window.left + shown, image.width);
  }
  const ImagePart& part = image.part;
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = 0; y < window.height; ++y, out += window.width) {
      const int64_t row = numbers.behind_padding(window.top + y, image.height);
      const int64_t from = (c * part.height + row - part.top) * part.width - part.left;
      for (int64_t x = 0; x < window.width; ++x)
        out[x] = row < 0 || columns[x] < 0 ? 0 : in[from + columns[x]];
    }
  }
}

// Three channels of means as one: the mean of grey images is the grey of their mean.
void make_gray(const TransformParams& numbers, std::vector<float>& means) {
  const size_t count = means.size() / 3;
  std::vector<float> gray(count);
  write_gray(numbers, means.data(), static_cast<int64_t>(count), false, gray.data());
  means = std::move(gray);
}

std::vector<uint8_t> bytes_of(const std::vector<float>& values) {
  std::vector<uint8_t> bytes;
  for (const float value : values)
    bytes.push_back(static_cast<uint8_t>(std::clamp(std::round(value), 0.f, 255.f)));
  return bytes;
}

}  // namespace

Transform::Transform(const TransformationParameter& parameter, bool training,
                     const std::string& folder, Log& log)
    : numbers_{parameter.scale(),
               parameter.crop_size(),
               parameter.crop_size(),
               parameter.mirror(),
               training,
               parameter.flow() || parameter.is_flow()},
      augmentation_(parameter, training),
      red_first_(parameter.bgr2rgb() || (parameter.has_color_order() &&
                                         parameter.color_order() == TransformationParameter::RGB)),
      scaled_(parameter.scaled_decoding()),
      mean_values_(parameter.mean_value().begin(), parameter.mean_value().end()) {
  std::vector<float> fill = mean_values_;  // fill value of changes
  require(!parameter.force_color() || !parameter.force_gray(),
          "transform_param sets both force_color and force_gray");
  if (parameter.force_color()) color_ = Color::color;
  if (parameter.force_gray()) color_ = Color::gray;
  if (parameter.has_gray()) {
    require(!numbers_.flow, "transform_param sets both gray and flow, which has no colours");
    numbers_.gray = parameter.gray() == TransformationParameter::RGB ? GrayOf::rgb : GrayOf::bgr;
    if (mean_values_.size() == 3) make_gray(numbers_, mean_values_);
  }
  if (parameter.crop_h() > 0 || parameter.crop_height() > 0) {
    numbers_.crop_height = std::max(parameter.crop_h(), parameter.crop_height());
  }
  if (parameter.crop_w() > 0 || parameter.crop_width() > 0)
    numbers_.crop_width = std::max(parameter.crop_w(), parameter.crop_width());
  numbers_.pad = parameter.pad();
  numbers_.reflects = parameter.pad_mode() == TransformationParameter::REFLECT;
  numbers_.alternates = parameter.mirror_alternates();
  require(numbers_.pad == 0 || !numbers_.flow,
          "transform_param sets both pad and flow: the values around an optical flow are unknown");
  require(!numbers_.alternates || numbers_.mirror,
          "transform_param has mirror_alternates: true, but mirror is false");
  require((numbers_.crop_height > 0) == (numbers_.crop_width > 0),
          "transform_param gives only one side of the crop; give crop_size, or both");
  if (!parameter.mean_file().empty()) {
    require(mean_values_.empty(),
            "transform_param gives both mean_file and mean_value; one of them is enough");
    mean_file_ = find_file(parameter.mean_file(), folder);
    log.info("Loading mean file from: " + mean_file_);
    Mean mean = read_mean(mean_file_);
    require(!parameter.augment().has_resized_crop(), "augment has resized_crop, but the mean in ",
            mean_file_, " is that of images of one size; give mean_value");
    if (mean.shape.axes() == 3) fill = mean.channels();
    mean_shape_ = mean.shape;
    mean_image_ = std::move(mean.values);
    if (makes_gray(mean_shape_[0])) {
      make_gray(numbers_, mean_image_);
      mean_shape_[0] = 1;
    }
  }
  if (!parameter.has_augment()) return;
  Changes::Surroundings around{training, numbers_.crop_height, numbers_.crop_width,
                               red_first_ || numbers_.gray == GrayOf::rgb};
  if (!fill.empty()) around.fill = bytes_of(fill);
  changes_ = Changes(parameter.augment(), std::move(around));
  require(!changes_.any() || !numbers_.flow,
          "transform_param sets both augment and flow: what a change of an optical flow would be "
          "is not known");
}

std::vector<Transform> Transform::of_frames() const {
  if (mean_shape_.axes() != 4) return {*this};
  const int64_t channels = mean_shape_[0], frames = mean_shape_[1], plane = mean_shape_.count(2);
  std::vector<Transform> all(static_cast<size_t>(frames), *this);
  for (int64_t frame = 0; frame < frames; ++frame) {
    Transform& own = all[frame];
    own.mean_shape_ = {channels, mean_shape_[2], mean_shape_[3]};
    own.mean_image_.clear();
    for (int64_t c = 0; c < channels; ++c) {
      const auto from = mean_image_.begin() + (c * frames + frame) * plane;
      own.mean_image_.insert(own.mean_image_.end(), from, from + plane);
    }
  }
  return all;
}

ImageNeed Transform::need(const ImageExtents& size, const Draw& draw, Rng rng) const {
  if (augmentation_.any()) return {};
  if (!changes_.any()) {
    output({size.channels, size.height, size.width});  // there is no crop of too small an image
    return {1, shown(size.height, size.width, draw)};
  }
  if (!scaled_) return {};
  return {changes_.draw(size.height, size.width, rng).warp.possible_shrink()};
}

ImagePart Transform::shown(int64_t height, int64_t width, const Draw& draw) const {
  const TransformParams& n = numbers_;
  if (n.crop_height == 0) return {0, 0, height, width};
  const auto range = [&](int64_t begin, int64_t count, int64_t extent) {
    std::pair<int64_t, int64_t> found(extent, -1);
    for (int64_t i = begin; i < begin + count; ++i) {
      const int64_t at = n.behind_padding(i, extent);
      if (at < 0) continue;
      found = {std::min(found.first, at), std::max(found.second, at)};
    }
    // A crop of nothing but padding.
    return found.second < 0 ? std::pair<int64_t, int64_t>(0, 0) : found;
  };
  const Cut cut = n.cut(height, width, draw);
  const auto [top, bottom] = range(cut.top, n.crop_height, height);
  const auto [left, right] = range(cut.left, n.crop_width, width);
  return {top, left, bottom - top + 1, right - left + 1};
}

void Transform::augment(Record& record, Rng rng) const {
  if (!augmentation_.any() && !changes_.any()) return;
  to_image(record);
  if (record.shrink > 1) {
    Change change = changes_.draw(record.height, record.width, rng);
    change.warp.shrink(record.shrink);
    changes_.apply(change, record.image, rng);
  } else {
    augmentation_.apply(record.image, rng);
    changes_.apply(record.image, rng);
  }
  show_image(record);
}

void Transform::check_order_of_decoded() const {
  if (numbers_.gray == GrayOf::none || (numbers_.gray == GrayOf::rgb) == red_first_) return;
  fail("transform_param has gray: ", red_first_ ? "BGR" : "RGB", ", but decoded images have ",
       red_first_ ? "red first here (bgr2rgb, color_order)" : "blue first",
       "; write gray: ", red_first_ ? "RGB" : "BGR");
}

Shape Transform::output(const Shape& stored) const {
  Shape record = stored;
  if (numbers_.gray != GrayOf::none) {
    require(record[0] == 3 || record[0] == 1,
            "transform_param { gray } makes one channel of three, "
            "but the image has ",
            record[0], " channels");
    record[0] = 1;
  }
  if (!mean_image_.empty() && record != mean_shape_) {
    fail("the image is ", record.brief(), ", but the mean in ", mean_file_, " is ",
         mean_shape_.brief(), "; compute_image_mean makes one for this database");
  }
  require(mean_values_.size() <= 1 || static_cast<int64_t>(mean_values_.size()) == record[0],
          "the image has ", record[0], " channels, but there are ", mean_values_.size(),
          " mean_value; give one, or one a channel");
  if (numbers_.pad >= record[1] || numbers_.pad >= record[2]) {
    fail("transform_param pads ", numbers_.pad, " rows and columns, but the image is only ",
         record.brief());
  }
  record[1] += 2 * numbers_.pad;
  record[2] += 2 * numbers_.pad;
  if (numbers_.crop_height == 0) return record;
  if (record[1] < numbers_.crop_height || record[2] < numbers_.crop_width) {
    fail("the image is ", record.brief(), numbers_.pad > 0 ? " with its padding" : "",
         ": too small for a crop of ", numbers_.crop_height, "x", numbers_.crop_width);
  }
  return {record[0], numbers_.crop_height, numbers_.crop_width};
}

// Calls write(layout, values, means) with the record, or with its grey image.
template <typename Write>
void Transform::with_planes(const Record& record, const Write& write) const {
  const ImagePart all{0, 0, record.height, record.width},
      part = record.part.height > 0 ? record.part : all;
  const Layout layout{record.channels, record.height, record.width, record.interleaved, part};
  if (!makes_gray(record.channels))
    return record.bytes ? write(layout, record.bytes) : write(layout, record.values);
  const int64_t plane = part.height * part.width;
  std::vector<float> gray(static_cast<size_t>(plane));
  if (record.bytes) {
    write_gray(numbers_, record.bytes, plane, record.interleaved, gray.data());
  } else {
    write_gray(numbers_, record.values, plane, record.interleaved, gray.data());
  }
  write(Layout{1, record.height, record.width, false, part}, gray.data());
}

void Transform::apply(const Record& record, const Draw& draw, float* out) const {
  const TransformParams& n = numbers_;
  const Cut cut = n.cut(record.height, record.width, draw);
  Window window{cut.top,    cut.left, record.height + 2 * n.pad, record.width + 2 * n.pad,
                cut.mirror, n.flow};
  if (n.crop_height > 0) {
    window.height = n.crop_height;
    window.width = n.crop_width;
  }
  const float* mean = mean_image_.empty() ? nullptr : mean_image_.data();
  with_planes(record, [&](const Layout& layout, const auto* in) {
    if (n.pad == 0) return write(layout, in, window, mean, mean_values_, n.scale, out);
    // First the available part of the image, then the window's part of it: the padding belongs to
    // the result.
    const ImagePart& part = layout.part;
    const Window whole{part.top, part.left, part.height, part.width, false, false};
    std::vector<float> image(static_cast<size_t>(layout.channels * part.height * part.width));
    write(layout, in, whole, mean, mean_values_, n.scale, image.data());
    write_padded(n, layout, window, image.data(), out);
  });
}

}  // namespace crema
