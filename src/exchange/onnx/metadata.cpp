#include "exchange/onnx/metadata.h"

#include "base/strings.h"
#include "net/preparation.h"

namespace crema {

void add_metadata(const NetPreparation& preparation, const std::vector<std::string>& labels,
                  onnx::ModelProto* model) {
  const auto add = [&](const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto* entry = model->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  for (const InputPreparation& input : preparation.input()) {
    const TransformationParameter& p = input.transform_param();
    const std::string prefix = input.name() + ".";
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

}  // namespace crema
