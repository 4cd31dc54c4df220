#include <google/protobuf/descriptor.h>

#include <set>

#include "base/error.h"
#include "net/deploy_inputs.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// `source` of the layer's own family, "" if it has none.
std::string file_of(const LayerParameter& layer) {
  std::vector<const FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const Message& family = layer.GetReflection()->GetMessage(layer, field);
    const FieldDescriptor* source = field->message_type()->FindFieldByName("source");
    if (source && !source->is_repeated() && source->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      return family.GetReflection()->GetString(family, source);
  }
  return "";
}

std::string order_of_planes(const LayerParameter& layer) {
  // They decode images; the others hold planes as somebody stored them.
  static const std::set<std::string> decoders = {
      "ImageData", "ImageSegData", "DenseImageData", "SegData",     "WindowData",
      "VideoData", "McWindowData", "BboxData",       "ImageGtData", "ImageFloatData"};
  if (decoders.count(layer.type()))
    return layer.transform_param().bgr2rgb() ? "planes in the order R, G, B"
                                             : "planes in the order B, G, R";
  const std::string file = file_of(layer);
  return file.empty() ? "" : cat("planes in the order of ", file);
}

}  // namespace

std::string describe(const DeployInput& input, const DeployGraph& graph) {
  const LayerParameter& layer = graph.net.layer(input.source);
  const TransformationParameter& p = layer.transform_param();
  std::vector<std::string> form = {cat(graph.blobs[input.blob].name, ": ", input.shape.brief())};
  if (input.shape.axes() == 4 && input.shape[1] == 3) {
    const std::string order = order_of_planes(layer);
    if (!order.empty()) form.push_back(order);
  }
  const ImageDataParameter& images = layer.image_data_param();
  if (images.new_height() > 0 && images.new_width() > 0)
    form.push_back(cat("from images of ", images.new_height(), " x ", images.new_width()));
  if (p.crop_size() > 0) form.push_back("the middle of each image");
  std::vector<std::string> numbers, means;
  for (const float value : p.mean_value()) means.push_back(cat(value));
  if (p.has_mean_file()) means.push_back(p.mean_file());
  if (!means.empty()) numbers.push_back("minus " + join(means, ", "));
  if (p.scale() != 1) numbers.push_back(cat("times ", p.scale()));
  return join(form, ", ") + (numbers.empty() ? "" : "; " + join(numbers, ", then "));
}

}  // namespace crema
