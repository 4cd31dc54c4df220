#include "data/transforms/noise.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/transforms/pixels.h"

namespace crema {
namespace {

// The weights are those of brightness.
void take_color_away(Image& image) {
  if (image.channels != 3) return;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = image.pixels.data() + i;
    const double gray = 0.114 * pixel[0] + 0.587 * pixel[1] + 0.299 * pixel[2];
    std::fill_n(pixel, 3, static_cast<uint8_t>(std::lround(gray)));
  }
}

void salt(const SaltPepperParameter& parameter, Image& image, Rng& rng) {
  const int64_t pixel_count = image.height * image.width;
  const auto count = static_cast<int64_t>(parameter.fraction() * static_cast<float>(pixel_count));
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const pixel = image.pixels.data() + rng.pick(pixel_count) * image.channels;
    for (int c = 0; c < static_cast<int>(image.channels); ++c)
      pixel[c] = saturated(parameter.value(c % parameter.value_size()));
  }
}

}  // namespace

void check_noise(const NoiseParameter& p) {
  require(p.jpeg() == -1 || (p.jpeg() >= 1 && p.jpeg() <= 100), "noise_param has jpeg: ", p.jpeg(),
          ", but a quality is from 1 to 100, and -1 is none");
  const SaltPepperParameter& grains = p.saltpepper_param();
  require(grains.fraction() >= 0 && grains.fraction() <= 1, "saltpepper_param has a fraction of ",
          grains.fraction(), ", but a share of the pixels is from 0 to 1");
  require(!p.saltpepper() || grains.value_size() > 0,
          "saltpepper needs saltpepper_param { value: ... }, one for all channels or one for each");
  require(!p.convert_to_hsv() || !p.convert_to_lab(),
          "noise_param asks for both convert_to_hsv and convert_to_lab");
}

void add_noise(const NoiseParameter& p, Image& image, Rng& rng) {
  if (p.decolorize()) take_color_away(image);
  if (p.gauss_blur()) filter_image(ImageFilter::blur, image);
  if (p.hist_eq()) filter_image(ImageFilter::equalize, image);
  if (p.clahe()) filter_image(ImageFilter::equalize_regions, image);
  if (p.jpeg() > 0) {
    const Color color = image.channels == 1 ? Color::gray : Color::color;
    const std::string file = encode_image(image, "jpg", static_cast<int>(p.jpeg()));
    decode_image(file, color, image);
  }
  if (p.erode()) filter_image(ImageFilter::erode, image);
  for (uint8_t& value : image.pixels) {
    if (p.posterize()) value = static_cast<uint8_t>(value / 64 * 64 + 32);
    if (p.inverse()) value = static_cast<uint8_t>(255 - value);
  }
  if (p.saltpepper()) salt(p.saltpepper_param(), image, rng);
  if (image.channels != 3) return;
  if (p.convert_to_hsv()) change_color(ColorChange::bgr_to_hsv, image);
  if (p.convert_to_lab()) change_color(ColorChange::bgr_to_lab, image);
}

}  // namespace crema
