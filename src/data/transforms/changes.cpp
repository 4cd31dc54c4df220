#include "data/transforms/changes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/transforms/change_ranges.h"
#include "data/transforms/pixels.h"

namespace crema {
namespace {

// A number, or its negative.
float in_either_direction(float value, Rng& rng) { return rng.chance(0.5f) ? -value : value; }

void compress(int quality, Image& image) {
  require(image.channels == 1 || image.channels == 3, "augment has jpeg, but the image has ",
          image.channels, " channels; JPEG files have 1 or 3");
  const std::string file = encode_image(image, "jpg", quality);
  decode_image(file, image.channels == 1 ? Color::gray : Color::color, image);
}

}  // namespace

Changes::Changes(const AugmentParameter& parameter, Surroundings surroundings)
    : parameter_(parameter), around_(std::move(surroundings)) {
  check_changes(parameter_);
  require(!parameter_.has_resized_crop() || around_.crop_height > 0,
          "augment has resized_crop, which resizes to the crop of transform_param, but there is no "
          "crop_size");
}

bool Changes::moves() const {
  const AugmentParameter& p = parameter_;
  return around_.training && (p.has_resized_crop() || p.has_flip() || p.has_rotate() ||
                              p.has_shear() || p.has_perspective() || p.has_rand_augment());
}

bool Changes::mixes() const {
  return around_.training && (parameter_.has_mixup() || parameter_.has_cutmix());
}

const AugmentMosaic* Changes::mosaic() const {
  return around_.training && parameter_.has_mosaic() ? &parameter_.mosaic() : nullptr;
}

bool Changes::repaints() const {
  const AugmentParameter& p = parameter_;
  return around_.training && (p.has_color() || p.has_gray() || p.has_blur() || p.has_jpeg() ||
                              p.has_noise() || p.has_cutout());
}

// A part of random area and aspect ratio; if none fits into the image in ten tries, the largest
// central one with an allowed aspect ratio.
void Changes::crop(Warp& warp, Rng& rng) const {
  constexpr int kTries = 10;
  const AugmentResizedCrop& p = parameter_.resized_crop();
  const auto height = static_cast<float>(warp.height), width = static_cast<float>(warp.width);
  const auto take = [&](int64_t top, int64_t left, int64_t rows, int64_t columns) {
    warp.crop(static_cast<double>(top), static_cast<double>(left), static_cast<double>(rows),
              static_cast<double>(columns), around_.crop_height, around_.crop_width);
  };
  for (int i = 0; i < kTries; ++i) {
    const float area = height * width * rng.between(p.least_area(), p.most_area());
    const float aspect =
        std::exp(rng.between(std::log(p.least_aspect()), std::log(p.most_aspect())));
    const int64_t rows = std::lround(std::sqrt(area / aspect)),
                  columns = std::lround(std::sqrt(area * aspect));
    if (rows < 1 || columns < 1 || rows > warp.height || columns > warp.width) continue;
    const int64_t top = rng.pick(warp.height - rows + 1), left = rng.pick(warp.width - columns + 1);
    return take(top, left, rows, columns);
  }
  const float aspect = std::clamp(width / height, p.least_aspect(), p.most_aspect());
  const int64_t rows = std::clamp<int64_t>(std::lround(width / aspect), 1, warp.height),
                columns = std::clamp<int64_t>(std::lround(height * aspect), 1, warp.width);
  take((warp.height - rows) / 2, (warp.width - columns) / 2, rows, columns);
}

// Each corner moves inwards by a share of the width and one of the height.
void Changes::move_corners(float least, float most, Warp& warp, Rng& rng) const {
  const auto height = static_cast<double>(warp.height), width = static_cast<double>(warp.width);
  PlanePoint corners[4] = {{0, 0}, {width, 0}, {width, height}, {0, height}};
  for (PlanePoint& corner : corners) {
    const double x = rng.between(least, most), y = rng.between(least, most);
    corner.x += corner.x > 0 ? -x * width : x * width;
    corner.y += corner.y > 0 ? -y * height : y * height;
  }
  warp.move_corners(corners);
}

Change Changes::draw(int64_t height, int64_t width, Rng& rng) const {
  const AugmentParameter& p = parameter_;
  Change change{{height, width}, {}};
  Warp& warp = change.warp;
  if (!moves()) return change;
  if (p.has_resized_crop() && rng.chance(p.resized_crop().probability())) crop(warp, rng);
  if (p.has_flip()) {
    const bool horizontal = rng.chance(p.flip().horizontal()),
               vertical = rng.chance(p.flip().vertical());
    warp.flip(horizontal, vertical);
  }
  if (const auto angle = kRotation.draw(p.has_rotate(), p.rotate(), rng))
    warp.rotate(in_either_direction(*angle, rng));
  if (const auto angle = kShear.draw(p.has_shear(), p.shear(), rng)) {
    constexpr float kDegree = 3.14159265f / 180;
    const float tangent = in_either_direction(std::tan(*angle * kDegree), rng);
    const bool along_x = rng.chance(0.5f);
    warp.shear(along_x ? tangent : 0, along_x ? 0 : tangent, static_cast<double>(warp.width) / 2,
               static_cast<double>(warp.height) / 2);
  }
  if (p.has_perspective() && rng.chance(p.perspective().probability())) {
    move_corners(kPerspective.least_of(p.perspective()), kPerspective.most_of(p.perspective()),
                 warp, rng);
  }
  for (int i = 0; p.has_rand_augment() && i < p.rand_augment().number(); ++i) {
    change.others.push_back(draw_change(p.rand_augment().magnitude(), rng));
    add_to_warp(change.others.back(), warp);
  }
  return change;
}

void Changes::apply(const Change& change, Image& image, Rng& rng) const {
  if (!any()) return;
  const AugmentParameter& p = parameter_;
  if (change.warp.any) image = warp_image(image, change.warp, around_.fill);
  for (const RandChange& other : change.others) change_pixels(other, around_.red_first, image);
  if (p.has_color() && rng.chance(p.color().probability())) change_colors(image, rng);
  if (p.has_gray() && rng.chance(p.gray().probability())) make_grey(around_.red_first, image);
  if (const auto deviation = kBlur.draw(p.has_blur(), p.blur(), rng)) blur(*deviation, image);
  if (const auto quality = kJpeg.draw(p.has_jpeg(), p.jpeg(), rng))
    compress(static_cast<int>(std::lround(*quality)), image);
  if (const auto deviation = kNoise.draw(p.has_noise(), p.noise(), rng))
    add_gaussian_noise(*deviation, rng.branch(), image);
  if (p.has_cutout() && rng.chance(p.cutout().probability())) cut_out(image, rng);
}

void Changes::apply(Image& image, Rng& rng) const {
  apply(draw(image.height, image.width, rng), image, rng);
}

void Changes::change_colors(Image& image, Rng& rng) const {
  const AugmentColor& p = parameter_.color();
  const auto factor = [&](float most) { return rng.between(std::max(0.f, 1 - most), 1 + most); };
  if (p.brightness() > 0) change_brightness(factor(p.brightness()), image);
  if (p.contrast() > 0) change_contrast(factor(p.contrast()), around_.red_first, image);
  if (p.saturation() > 0) change_saturation(factor(p.saturation()), around_.red_first, image);
  if (p.hue() > 0) change_hue(rng.between(-p.hue(), p.hue()), around_.red_first, image);
}

// The centres of the squares are pixels of the image; what reaches beyond it is cut off.
void Changes::cut_out(Image& image, Rng& rng) const {
  const AugmentCutout& p = parameter_.cutout();
  const auto smaller = static_cast<float>(std::min(image.height, image.width));
  const int64_t side = std::max<int64_t>(1, std::lround(p.size() * smaller));
  const auto fills = static_cast<int64_t>(around_.fill.size());
  for (int hole = 0; hole < p.holes(); ++hole) {
    const int64_t top = rng.pick(image.height) - side / 2, left = rng.pick(image.width) - side / 2;
    for (int64_t y = std::max<int64_t>(0, top); y < std::min(top + side, image.height); ++y) {
      for (int64_t x = std::max<int64_t>(0, left); x < std::min(left + side, image.width); ++x) {
        uint8_t* const pixel = image.pixels.data() + (y * image.width + x) * image.channels;
        for (int64_t c = 0; c < image.channels; ++c) pixel[c] = around_.fill[c % fills];
      }
    }
  }
}

// Each one alone, a few times.
std::string Changes::dearest(int64_t channels, int64_t height, int64_t width) const {
  // The slowest do not count: other work may have used the core.
  constexpr int kTimes = 8, kCounted = 6;
  std::string found;
  if (!any() || height < 1) return found;
  Image plain;
  plain.channels = channels;
  plain.height = height;
  plain.width = width;
  plain.pixels.assign(static_cast<size_t>(channels * height * width), 0);
  for (size_t i = 0; i < plain.pixels.size(); ++i) plain.pixels[i] = static_cast<uint8_t>(i / 8);
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  parameter_.GetReflection()->ListFields(parameter_, &fields);
  using Clock = std::chrono::steady_clock;
  auto longest = Clock::duration::zero();
  for (const google::protobuf::FieldDescriptor* kept : fields) {
    Changes one = *this;
    for (const google::protobuf::FieldDescriptor* field : fields) {
      if (field != kept) one.parameter_.GetReflection()->ClearField(&one.parameter_, field);
    }
    if (!one.any()) continue;
    Rng rng({1, 1});
    std::array<Clock::duration, kTimes> times;
    for (Clock::duration& time : times) {
      Image image = plain;
      const auto begin = Clock::now();
      one.apply(image, rng);
      time = Clock::now() - begin;
    }
    std::sort(times.begin(), times.end());
    const auto duration =
        std::accumulate(times.begin(), times.begin() + kCounted, Clock::duration::zero());
    if (duration <= longest) continue;
    longest = duration;
    found = kept->name();
  }
  return found;
}

}  // namespace crema
