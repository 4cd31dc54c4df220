#include "data/transforms/augment.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "data/transforms/noise.h"
#include "data/transforms/pixels.h"

namespace crema {
namespace {

// x * factor + shift for one channel, or for all (-1).
void adjust(Image& image, int channel, float factor, float shift) {
  uint8_t changed[256];
  for (int i = 0; i < 256; ++i) changed[i] = saturated(static_cast<float>(i) * factor + shift);
  const size_t step = channel < 0 ? 1 : static_cast<size_t>(image.channels);
  for (size_t i = channel < 0 ? 0 : channel; i < image.pixels.size(); i += step)
    image.pixels[i] = changed[image.pixels[i]];
}

// Channel c of a pixel becomes the old channel order[c].
void reorder_colors(Image& image, const int order[3]) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = image.pixels.data() + i;
    const uint8_t old[3] = {pixel[0], pixel[1], pixel[2]};
    for (int c = 0; c < 3; ++c) pixel[c] = old[order[c]];
  }
}

Interpolation interpolation_of(TransformationParameter::InterpolationAlgo algorithm) {
  switch (algorithm) {
    case TransformationParameter::INTER_NEAREST:
      return Interpolation::nearest;
    case TransformationParameter::INTER_LINEAR:
      return Interpolation::linear;
    case TransformationParameter::INTER_CUBIC:
      return Interpolation::cubic;
    case TransformationParameter::INTER_AREA:
      return Interpolation::area;
  }
  return Interpolation::linear;
}

Interpolation interpolation_of(ResizeParameter::Interp_mode mode) {
  switch (mode) {
    case ResizeParameter::LINEAR:
      return Interpolation::linear;
    case ResizeParameter::AREA:
      return Interpolation::area;
    case ResizeParameter::NEAREST:
      return Interpolation::nearest;
    case ResizeParameter::CUBIC:
      return Interpolation::cubic;
    case ResizeParameter::LANCZOS4:
      return Interpolation::lanczos;
  }
  return Interpolation::linear;
}

// The row or column to read for `at` in an image of `count`, when `mode` fills the outside.
int64_t inside(int64_t at, int64_t count, ResizeParameter::Pad_mode mode) {
  if (mode == ResizeParameter::REPEAT_NEAREST || count == 1)
    return std::clamp<int64_t>(at, 0, count - 1);
  const int64_t period = 2 * (count - 1), folded = ((at % period) + period) % period;
  return folded < count ? folded : period - folded;
}

Image padded(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width,
             const ResizeParameter& parameter) {
  if (parameter.pad_mode() == ResizeParameter::CONSTANT) {
    std::vector<uint8_t> pixel(static_cast<size_t>(image.channels));
    for (int c = 0; c < static_cast<int>(pixel.size()) && parameter.pad_value_size() > 0; ++c)
      pixel[c] = saturated(parameter.pad_value(c % parameter.pad_value_size()));
    return extend_image(image, top, left, height, width, pixel.data());
  }
  Image larger{image.channels, height, width, {}};
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = inside(y - top, image.height, parameter.pad_mode());
    for (int64_t x = 0; x < width; ++x) {
      const int64_t column = inside(x - left, image.width, parameter.pad_mode());
      const auto from = image.pixels.begin() + (row * image.width + column) * image.channels;
      larger.pixels.insert(larger.pixels.end(), from, from + image.channels);
    }
  }
  return larger;
}

struct Size {
  int64_t height, width;
};

// The size to which an image of this size is resized, before padding.
Size fitted(const ResizeParameter& parameter, int64_t height, int64_t width) {
  const int64_t to_height = parameter.height(), to_width = parameter.width();
  if (parameter.resize_mode() == ResizeParameter::WARP) return {to_height, to_width};
  const float proportion = static_cast<float>(width) / static_cast<float>(height);
  const bool wider = proportion > static_cast<float>(to_width) / static_cast<float>(to_height);
  const auto whole = [](float side) { return std::max<int64_t>(1, static_cast<int64_t>(side)); };
  // A wider image fits by its width, or covers by its height.
  if (wider == (parameter.resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD))
    return {whole(static_cast<float>(to_width) / proportion), to_width};
  return {to_height, whole(static_cast<float>(to_height) * proportion)};
}

void resize_by(const ResizeParameter& parameter, Image& image, Rng& rng) {
  const auto drawn = static_cast<int>(rng.pick(std::max(1, parameter.interp_mode_size())));
  const Interpolation interpolation = parameter.interp_mode_size() > 0
                                          ? interpolation_of(parameter.interp_mode(drawn))
                                          : Interpolation::linear;
  const Size size = fitted(parameter, image.height, image.width);
  resize_image(size.height, size.width, image, interpolation);
  if (parameter.resize_mode() != ResizeParameter::FIT_LARGE_SIZE_AND_PAD) return;
  const int64_t height = parameter.height(), width = parameter.width();
  if (height == size.height && width == size.width) return;
  image =
      padded(image, (height - size.height) / 2, (width - size.width) / 2, height, width, parameter);
}

void check(const ResizeParameter& parameter, const char* name) {
  require(parameter.height() > 0 && parameter.width() > 0, name,
          " needs a height and a width above 0, not ", parameter.height(), " and ",
          parameter.width());
}

}  // namespace

Augmentation::Augmentation(const TransformationParameter& parameter, bool training)
    : parameter_(parameter), training_(training) {
  const TransformationParameter& p = parameter_;
  crop_height_ = std::max({p.crop_size(), p.crop_h(), p.crop_height()});
  crop_width_ = std::max({p.crop_size(), p.crop_w(), p.crop_width()});
  any_ = p.has_distort_param() || p.has_expand_param() || p.has_random_aspect_ratio_param() ||
         p.has_random_resize_param() || stretches() || p.has_resize_param() ||
         p.has_noise_param() || (training && places_crop());
  check_noise(p.noise_param());
  require(!places_crop() || (crop_height_ > 0 && crop_width_ > 0),
          "multi_scale and fix_crop say where to crop, but there is no crop_size");
  for (const float ratio : p.scale_ratios())
    require(0 < ratio && ratio <= 1, "scale_ratios has ", ratio,
            "; a crop's side is a share of the image's smaller side, above 0 and at most 1");
  if (p.has_resize_param()) check(p.resize_param(), "resize_param");
  const RandomAspectRatioParameter& aspect = p.random_aspect_ratio_param();
  if (p.has_random_aspect_ratio_param()) {
    require(0 < aspect.min_area_ratio() && aspect.min_area_ratio() <= aspect.max_area_ratio() &&
                aspect.max_area_ratio() <= 1 && aspect.aspect_ratio_change() >= 1,
            "random_aspect_ratio_param needs area ratios above 0 and at most 1, the smaller one as "
            "min_area_ratio, and an aspect_ratio_change of at least 1");
    if (aspect.has_resize_param()) check(aspect.resize_param(), "the resize_param inside");
  }
  if (p.has_random_resize_param() || p.img_rand_resize_lower() > 0) {
    const bool fork = p.img_rand_resize_lower() > 0;
    const uint32_t minimum = fork ? p.img_rand_resize_lower() : p.random_resize_param().min_size(),
                   maximum = fork ? p.img_rand_resize_upper() : p.random_resize_param().max_size();
    require(0 < minimum && minimum <= maximum,
            "the smaller side is to be resized to a length from ", minimum, " to ", maximum,
            "; both must be above 0, the smaller one first");
  }
  constexpr float kLargest = 1000;
  require(
      p.expand_param().max_expand_ratio() >= 1 && p.expand_param().max_expand_ratio() <= kLargest,
      "expand_param has a max_expand_ratio of ", p.expand_param().max_expand_ratio(),
      "; an image grows by a factor from 1 to ", kLargest);
}

void Augmentation::apply(Image& image, Rng& rng) const {
  distort(image, rng);
  expand(image, rng);
  crop_at_random(image, rng);
  resize_at_random(image, rng);
  resize(image, rng);
  finish(image, rng);
  place_crop(image, rng);
}

void Augmentation::distort(Image& image, Rng& rng) const {
  if (!parameter_.has_distort_param()) return;
  const DistortionParameter& d = parameter_.distort_param();
  const bool color = image.channels == 3;
  const auto contrast = [&] {
    if (rng.chance(d.contrast_prob()))
      adjust(image, -1, rng.between(d.contrast_lower(), d.contrast_upper()), 0);
  };
  if (rng.chance(d.brightness_prob()))
    adjust(image, -1, 1, rng.between(-d.brightness_delta(), d.brightness_delta()));
  // Contrast comes first or last.
  const bool contrast_first = rng.chance(0.5f);
  if (contrast_first) contrast();
  const bool saturation = color && rng.chance(d.saturation_prob()),
             hue = color && rng.chance(d.hue_prob());
  if (saturation || hue) {
    change_color(ColorChange::bgr_to_hsv, image);
    if (saturation) adjust(image, 1, rng.between(d.saturation_lower(), d.saturation_upper()), 0);
    if (hue) adjust(image, 0, 1, rng.between(-d.hue_delta(), d.hue_delta()));
    change_color(ColorChange::hsv_to_bgr, image);
  }
  if (!contrast_first) contrast();
  if (color && rng.chance(d.random_order_prob())) {
    int order[3] = {0, 1, 2};
    std::swap(order[2], order[rng.pick(3)]);
    std::swap(order[1], order[rng.pick(2)]);
    reorder_colors(image, order);
  }
}

bool Augmentation::reverses_colors() const {
  return parameter_.bgr2rgb() ||
         (parameter_.has_color_order() && parameter_.color_order() == TransformationParameter::RGB);
}

void Augmentation::finish(Image& image, Rng& rng) const {
  if (parameter_.has_noise_param()) add_noise(parameter_.noise_param(), image, rng);
  constexpr int kRedFirst[3] = {2, 1, 0};
  if (reverses_colors() && image.channels == 3) reorder_colors(image, kRedFirst);
}

Region Augmentation::expand(Image& image, Rng& rng) const {
  const ExpansionParameter& e = parameter_.expand_param();
  constexpr float kMin = 1.01f;
  if (!parameter_.has_expand_param() || !rng.chance(e.prob()) || e.max_expand_ratio() < kMin)
    return {};
  const float ratio = rng.between(1, e.max_expand_ratio());
  const auto grown = [&](int64_t side) {
    return std::max(side, static_cast<int64_t>(static_cast<float>(side) * ratio));
  };
  const int64_t height = grown(image.height), width = grown(image.width);
  const int64_t top = rng.pick(height - image.height + 1), left = rng.pick(width - image.width + 1);
  std::vector<uint8_t> pixel(static_cast<size_t>(image.channels));
  for (int c = 0; c < static_cast<int>(pixel.size()) && parameter_.mean_value_size() > 0; ++c)
    pixel[c] = saturated(parameter_.mean_value(c % parameter_.mean_value_size()));
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<float>(part) / static_cast<float>(whole);
  };
  const Region shown{share(-left, image.width), share(-top, image.height),
                     share(width - left, image.width), share(height - top, image.height)};
  image = extend_image(image, top, left, height, width, pixel.data());
  return shown;
}

void Augmentation::crop_at_random(Image& image, Rng& rng) const {
  if (!parameter_.has_random_aspect_ratio_param()) return;
  const RandomAspectRatioParameter& p = parameter_.random_aspect_ratio_param();
  const auto area = static_cast<float>(image.height * image.width);
  for (uint32_t attempt = 0; attempt < p.max_attempt(); ++attempt) {
    const float part = area * rng.between(p.min_area_ratio(), p.max_area_ratio());
    const float change = rng.between(1, p.aspect_ratio_change());
    const float ratio = rng.chance(0.5f) ? change : 1 / change;
    const int64_t height = std::lround(std::sqrt(part / ratio)),
                  width = std::lround(std::sqrt(part * ratio));
    if (height < 1 || width < 1 || height > image.height || width > image.width) continue;
    const int64_t top = rng.pick(image.height - height + 1),
                  left = rng.pick(image.width - width + 1);
    image = cut_image(image, top, left, height, width);
    break;
  }
  if (p.has_resize_param()) resize_by(p.resize_param(), image, rng);
}

void Augmentation::resize_at_random(Image& image, Rng& rng) const {
  if (stretches()) return stretch(image, rng);
  if (!parameter_.has_random_resize_param()) return;
  const RandomResizeParameter& p = parameter_.random_resize_param();
  const int64_t minimum = p.min_size(), maximum = p.max_size();
  const int64_t side = minimum + rng.pick(maximum - minimum + 1);
  ResizeParameter resize = p.resize_param();
  resize.set_resize_mode(ResizeParameter::FIT_SMALL_SIZE);
  resize.set_height(static_cast<uint32_t>(side));
  resize.set_width(static_cast<uint32_t>(side));
  resize_by(resize, image, rng);
}

bool Augmentation::stretches() const {
  const TransformationParameter& p = parameter_;
  return p.img_rand_resize_lower() > 0 || p.has_rand_resize_ratio_lower() ||
         p.has_rand_resize_ratio_upper() || p.has_vertical_stretch_lower() ||
         p.has_vertical_stretch_upper() || p.has_horizontal_stretch_lower() ||
         p.has_horizontal_stretch_upper();
}

// The smaller side gets a random length, the larger one keeps its ratio to it or gets a random one,
// then each is stretched independently; never below the crop.
void Augmentation::stretch(Image& image, Rng& rng) const {
  const TransformationParameter& p = parameter_;
  const int64_t smaller = std::min(image.height, image.width);
  int64_t side = smaller;
  if (p.img_rand_resize_lower() > 0) {
    const int64_t minimum = p.img_rand_resize_lower();
    side = minimum + rng.pick(p.img_rand_resize_upper() - minimum + 1);
  }
  const float factor = static_cast<float>(side) / static_cast<float>(smaller);
  float height = factor * static_cast<float>(image.height),
        width = factor * static_cast<float>(image.width);
  if (p.rand_resize_ratio_lower() >= 1 && p.rand_resize_ratio_upper() > 1) {
    const float ratio = rng.between(p.rand_resize_ratio_lower(), p.rand_resize_ratio_upper());
    const bool wide = width > height || (width == height && rng.chance(0.5f));
    (wide ? width : height) = ratio * (wide ? height : width);
  }
  height *= rng.between(p.vertical_stretch_lower(), p.vertical_stretch_upper());
  width *= rng.between(p.horizontal_stretch_lower(), p.horizontal_stretch_upper());
  const auto whole = [&](float length, int64_t crop, int64_t now) {
    const int64_t wanted = std::max({std::llround(length), static_cast<long long>(crop), 1LL});
    return p.allow_upscale() ? wanted : std::min(wanted, now);
  };
  const int64_t to_height = whole(height, crop_height_, image.height),
                to_width = whole(width, crop_width_, image.width);
  const bool down = to_height <= image.height && to_width <= image.width;
  resize_image(to_height, to_width, image,
               interpolation_of(down ? p.interpolation_algo_down() : p.interpolation_algo_up()));
}

// Cuts out the area of the net's crop: at a corner, in the centre, between them or anywhere, in one
// of several sizes, resized to the crop's size.
void Augmentation::place_crop(Image& image, Rng& rng) const {
  if (!training_ || !places_crop()) return;
  const TransformationParameter& p = parameter_;
  int64_t height = crop_height_, width = crop_width_;
  if (p.multi_scale()) {
    std::vector<float> ratios(p.scale_ratios().begin(), p.scale_ratios().end());
    if (ratios.empty()) ratios = {1, 0.875f, 0.75f, 0.66f};
    const auto length = [&](size_t i, int64_t crop) {
      const auto side =
          static_cast<int64_t>(static_cast<float>(std::min(image.height, image.width)) * ratios[i]);
      // Nearly the crop's size counts as that size, to avoid resizing.
      return std::abs(side - crop) < 3 ? crop : std::max<int64_t>(1, side);
    };
    std::vector<std::pair<int64_t, int64_t>> sizes;
    for (size_t i = 0; i < ratios.size(); ++i) {
      for (size_t j = 0; j < ratios.size(); ++j) {
        if (std::abs(static_cast<int>(i) - static_cast<int>(j)) <= p.max_distort())
          sizes.emplace_back(length(i, crop_height_), length(j, crop_width_));
      }
    }
    std::tie(height, width) = sizes[rng.pick(static_cast<int64_t>(sizes.size()))];
  }
  require(height <= image.height && width <= image.width, "the image is ", image.height, "x",
          image.width, ": too small for a crop of ", height, "x", width);
  const int64_t spare_rows = image.height - height, spare_columns = image.width - width;
  int64_t top = rng.pick(spare_rows + 1), left = rng.pick(spare_columns + 1);
  if (p.fix_crop()) {
    // In quarters of the spare space: corners and centre, the middles of the sides, then those
    // between.
    constexpr int kPositions[13][2] = {{0, 0}, {0, 4}, {4, 0}, {4, 4}, {2, 2}, {0, 2}, {4, 2},
                                       {2, 0}, {2, 4}, {1, 1}, {1, 3}, {3, 1}, {3, 3}};
    const int* offsets = kPositions[rng.pick(p.more_fix_crop() ? 13 : 5)];
    top = spare_rows / 4 * offsets[0];
    left = spare_columns / 4 * offsets[1];
  }
  image = cut_image(image, top, left, height, width);
  resize_image(crop_height_, crop_width_, image);
}

void Augmentation::resize(Image& image, Rng& rng) const {
  if (parameter_.has_resize_param()) resize_by(parameter_.resize_param(), image, rng);
}

void Augmentation::resize_objects(int64_t height, int64_t width,
                                  std::vector<Object>& objects) const {
  const ResizeParameter& p = parameter_.resize_param();
  // Relative coordinates stay the same unless padding is added around the image.
  if (!parameter_.has_resize_param() || p.resize_mode() != ResizeParameter::FIT_LARGE_SIZE_AND_PAD)
    return;
  const Size size = fitted(p, height, width);
  const auto move = [](float share, int64_t inner, int64_t outer) {
    const int64_t before = (outer - inner) / 2;  // whole pixels
    return (static_cast<float>(before) + share * static_cast<float>(inner)) /
           static_cast<float>(outer);
  };
  for (Object& object : objects) {
    Region& box = object.box;
    box = {move(box.xmin, size.width, p.width()), move(box.ymin, size.height, p.height()),
           move(box.xmax, size.width, p.width()), move(box.ymax, size.height, p.height())};
  }
}

}  // namespace crema
