#include "net/picture_settings.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

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

void set_mean(const std::string& mean, const std::string& prefix,
              TransformationParameter* transform) {
  transform->clear_mean_file();
  transform->clear_mean_value();
  for (const std::string& part : split(mean, ',')) {
    if (const auto value = number_in(part)) transform->add_mean_value(*value);
  }
  const auto values = static_cast<size_t>(transform->mean_value_size());
  if (values == split(mean, ',').size()) return;
  require(values == 0, prefix, "mean ", mean,
          ": expected numbers, such as 104,117,123, or the name of a mean file");
  transform->set_mean_file(mean);
}

}  // namespace

PictureSize picture_size(const std::string& text, const std::string& name) {
  const std::vector<std::string> sides = split(text, 'x');
  int64_t numbers[2] = {0, 0};
  bool good = sides.size() == 2;
  for (size_t i = 0; good && i < 2; ++i) {
    const char* const end = sides[i].data() + sides[i].size();
    const auto [rest, problem] = std::from_chars(sides[i].data(), end, numbers[i]);
    good = problem == std::errc() && rest == end && numbers[i] > 0;
  }
  require(good, name, " ", text, ": expected width x height in pixels, such as 256x256");
  return {numbers[1], numbers[0]};
}

bool change_preparation(const PictureSettings& settings, InputPreparation* preparation) {
  const bool scale = settings.scale.has_value(), mean = !settings.mean.empty();
  require(!scale || *settings.scale != 0, settings.prefix,
          "scale 0: expected a factor other than 0");
  if (scale) preparation->mutable_transform_param()->set_scale(*settings.scale);
  if (mean) set_mean(settings.mean, settings.prefix, preparation->mutable_transform_param());
  if (!settings.resize.empty()) {
    const PictureSize size = picture_size(settings.resize, settings.prefix + "resize");
    preparation->clear_short_side();
    preparation->set_resize_height(static_cast<uint32_t>(size.height));
    preparation->set_resize_width(static_cast<uint32_t>(size.width));
  }
  if (settings.rgb && preparation->has_channels() &&
      preparation->channels() != InputPreparation::GRAY) {
    // If the data layer reverses the order, its records have the opposite one.
    const TransformationParameter& p = preparation->transform_param();
    const bool turned =
        p.bgr2rgb() || (p.has_color_order() && p.color_order() == TransformationParameter::RGB);
    preparation->set_channels(turned ? InputPreparation::BGR : InputPreparation::RGB);
  }
  return scale || mean || !settings.resize.empty() || settings.rgb;
}

}  // namespace crema
