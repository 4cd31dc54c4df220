#include "exchange/onnx/metadata.h"

#include <charconv>

#include "base/error.h"
#include "net/preparation.h"

namespace crema {

void add_metadata(const NetPreparation& preparation, const std::vector<std::string>& labels,
                  const PictureInputs& pictures, onnx::ModelProto* model) {
  const auto add = [&](const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto* entry = model->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  for (const InputPreparation& input : preparation.input()) {
    const TransformationParameter& p = input.transform_param();
    const std::string prefix = input.name() + ".";
    if (const auto picture = pictures.find(input.name()); picture != pictures.end()) {
      add(prefix + "channels", picture->second.channels == 1 ? "GRAY" : "RGB");
      continue;
    }
    if (input.has_channels())
      add(prefix + "channels", InputPreparation::Channels_Name(input.channels()));
    if (input.resize_height() > 0)
      add(prefix + "resize", cat(input.resize_width(), "x", input.resize_height()));
    if (input.short_side() > 0) add(prefix + "short_side", cat(input.short_side()));
    if (crops(p)) add(prefix + "crop", "middle");
    std::vector<std::string> means;
    for (const float value : p.mean_value()) means.push_back(cat(value));
    if (!means.empty()) add(prefix + "mean", join(means, ","));
    if (p.has_mean_file()) add(prefix + "mean_file", p.mean_file());
    if (p.scale() != 1) add(prefix + "scale", cat(p.scale()));
  }
  if (!labels.empty()) add("labels", join(labels, "\n"));
}

InputPreparation preparation_in(const std::map<std::string, std::string>& metadata,
                                const std::string& input, const Shape& shape) {
  InputPreparation preparation;
  preparation.set_name(input);
  TransformationParameter* p = preparation.mutable_transform_param();
  const auto numbers = [&](const char* key) {
    std::vector<float> values;
    const auto entry = metadata.find(cat(input, ".", key));
    if (entry == metadata.end()) return values;
    for (const std::string& text : split(entry->second, ',')) {
      float value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      require(error == std::errc() && end == text.data() + text.size(), "the model's metadata has ",
              entry->first, ": \"", entry->second, "\"; expected numbers, separated by commas");
      values.push_back(value);
    }
    return values;
  };
  for (const float value : numbers("mean")) p->add_mean_value(value);
  for (const float value : numbers("scale")) p->set_scale(value);
  const auto mean = metadata.find(input + ".mean_file");
  if (mean != metadata.end()) p->set_mean_file(mean->second);
  const auto crop = metadata.find(input + ".crop");
  if (crop != metadata.end() && shape.axes() == 4) {
    p->set_crop_h(static_cast<uint32_t>(shape[2]));
    p->set_crop_w(static_cast<uint32_t>(shape[3]));
  }
  return preparation;
}

}  // namespace crema
