#include "tools/pages/drawing/layer_detail.h"

#include <google/protobuf/message.h>

#include <vector>

#include "base/strings.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The values of a field that is set; numbers, truths and enumerations.
std::vector<std::string> values_of(const Message& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (!field) return {};
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const auto one = [&](int i) -> std::string {
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        return cat(many ? reflection.GetRepeatedUInt32(message, field, i)
                        : reflection.GetUInt32(message, field));
      case FieldDescriptor::CPPTYPE_INT32:
        return cat(many ? reflection.GetRepeatedInt32(message, field, i)
                        : reflection.GetInt32(message, field));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return cat(many ? reflection.GetRepeatedFloat(message, field, i)
                        : reflection.GetFloat(message, field));
      case FieldDescriptor::CPPTYPE_ENUM:
        return many ? "" : lower_case(reflection.GetEnum(message, field)->name());
      case FieldDescriptor::CPPTYPE_BOOL:
        return !many && reflection.GetBool(message, field) ? "true" : "";
      default:
        return "";
    }
  };
  std::vector<std::string> values;
  if (field->is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) values.push_back(one(i));
  } else if (reflection.HasField(message, field)) {
    values.push_back(one(0));
  }
  std::erase(values, "");
  return values;
}

// "7x7": from `kernel_size`, or `kernel_h` and `kernel_w`; one value means height and width.
std::string extent(const Message& message, const std::string& size, const std::string& stem) {
  std::vector<std::string> values = values_of(message, size.c_str());
  if (values.empty()) {
    for (const char* axis : {"_h", "_w"}) {
      const std::vector<std::string> one = values_of(message, (stem + axis).c_str());
      values.insert(values.end(), one.begin(), one.end());
    }
  }
  if (values.size() == 1) values.push_back(values[0]);
  return join(values, "x");
}

// The same, short where height and width are equal and "" where both are `usual`.
std::string step(const Message& message, const std::string& name, const std::string& usual) {
  const std::string both = extent(message, name, name);
  if (both.empty() || both == usual + "x" + usual) return "";
  const size_t half = both.size() / 2;
  const bool equal = both.size() % 2 == 1 && both.substr(0, half) == both.substr(half + 1);
  return cat(", ", name, " ", equal ? both.substr(0, half) : both);
}

std::string detail_of(const Message& message) {
  std::string text;
  for (const std::string& value : values_of(message, "num_output"))
    text += cat(", ", value, " outputs");
  for (const char* name : {"pool", "operation", "dropout_ratio", "local_size"}) {
    for (const std::string& value : values_of(message, name)) text += ", " + value;
  }
  if (const std::string kernel = extent(message, "kernel_size", "kernel"); !kernel.empty())
    text += ", " + kernel;
  if (!values_of(message, "global_pooling").empty()) text += ", global";
  text += step(message, "stride", "1") + step(message, "pad", "0") + step(message, "dilation", "1");
  for (const char* name : {"group", "axis", "batch_size"}) {
    for (const std::string& value : values_of(message, name)) {
      const bool batch = std::string(name) == "batch_size";  // -1: as its bottoms have
      if (batch ? value[0] != '-' : value != "1") text += cat(", ", name, " ", value);
    }
  }
  return text;
}

}  // namespace

std::string layer_detail(const LayerParameter& layer) {
  std::vector<const FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  std::string text;
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    text += detail_of(layer.GetReflection()->GetMessage(layer, field));
  }
  if (layer.type() == "Pooling" && !layer.pooling_param().has_pool()) text = ", max" + text;
  return text.empty() ? "" : text.substr(2);
}

}  // namespace crema
