#include "tools/flags/image_flags.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace crema {

namespace {

std::optional<float> number_in(std::string_view text) {
  float number = 0;
  text = trim(text);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return {};
  return number;
}

void set_mean_of_flag(const std::string& mean, TransformationParameter* transform) {
  transform->clear_mean_file();
  transform->clear_mean_value();
  for (const std::string& part : split(mean, ',')) {
    if (const auto value = number_in(part)) transform->add_mean_value(*value);
  }
  const auto values = static_cast<size_t>(transform->mean_value_size());
  if (values == split(mean, ',').size()) return;
  require(values == 0, "-mean ", mean,
          ": expected numbers, such as 104,117,123, or the name of a mean file");
  transform->set_mean_file(mean);
}

}  // namespace

ImageSize resize_of_flag(const std::string& resize) {
  const std::vector<std::string> sides = split(resize, 'x');
  int64_t numbers[2] = {0, 0};
  bool good = sides.size() == 2;
  for (size_t i = 0; good && i < 2; ++i) {
    const char* const end = sides[i].data() + sides[i].size();
    const auto [rest, problem] = std::from_chars(sides[i].data(), end, numbers[i]);
    good = problem == std::errc() && rest == end && numbers[i] > 0;
  }
  require(good, "-resize ", resize, ": expected width x height in pixels, such as 256x256");
  return {numbers[1], numbers[0]};
}

bool change_preparation(const ImageFlags& flags, InputPreparation* preparation) {
  const bool scale = flags.scale_given, mean = !flags.mean.empty();
  require(!scale || flags.scale != 0, "-scale 0: expected a factor other than 0");
  if (scale) preparation->mutable_transform_param()->set_scale(static_cast<float>(flags.scale));
  if (mean) set_mean_of_flag(flags.mean, preparation->mutable_transform_param());
  if (!flags.resize.empty()) {
    const ImageSize size = resize_of_flag(flags.resize);
    preparation->clear_short_side();
    preparation->set_resize_height(static_cast<uint32_t>(size.height));
    preparation->set_resize_width(static_cast<uint32_t>(size.width));
  }
  if (flags.rgb && preparation->has_channels() &&
      preparation->channels() != InputPreparation::GRAY) {
    // If the data layer reverses the order, its records have the opposite one.
    const TransformationParameter& p = preparation->transform_param();
    const bool turned =
        p.bgr2rgb() || (p.has_color_order() && p.color_order() == TransformationParameter::RGB);
    preparation->set_channels(turned ? InputPreparation::BGR : InputPreparation::RGB);
  }
  return scale || mean || !flags.resize.empty() || flags.rgb;
}

}  // namespace crema
