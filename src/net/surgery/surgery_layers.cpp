#include "net/surgery/surgery_layers.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "base/error.h"
#include "layers/layer_facts.h"
#include "layers/layer_types.h"
#include "net/graph/given_blobs.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The types that work along the channels of each position.
std::vector<std::string> channelwise_types() {
  std::vector<std::string> types = layer_types();
  std::erase_if(types, [](const std::string& type) { return !facts_of(type).along_channels; });
  return types;
}

// Axes that are counted from the end, or all remaining ones, are the channels.
void name_channels(Message* family) {
  const auto* reflection = family->GetReflection();
  const FieldDescriptor* axis = family->GetDescriptor()->FindFieldByName("axis");
  if (axis && !axis->is_repeated() && axis->cpp_type() == FieldDescriptor::CPPTYPE_INT32 &&
      reflection->HasField(*family, axis)) {
    const int given = reflection->GetInt32(*family, axis);
    require(given == 1 || given == -1, "its axis ", given,
            " is that of the samples; with a map in place of each row of scores only axis 1, the "
            "channels, means the same");
    reflection->SetInt32(family, axis, 1);
  }
  const FieldDescriptor* axes = family->GetDescriptor()->FindFieldByName("num_axes");
  if (axes && reflection->HasField(*family, axes) && reflection->GetInt32(*family, axes) == -1)
    reflection->SetInt32(family, axes, 1);
}

}  // namespace

std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> turned(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) turned[j * rows + i] = values[i * columns + j];
  }
  return turned;
}

LayerParameter as_convolution(const LayerParameter& layer, const Shape& image, int axes) {
  const InnerProductParameter& p = layer.inner_product_param();
  require(layer.bottom_size() == 1,
          "its weights are a bottom; surgery reshapes weights that are learned");
  require(!p.normalize(),
          "it normalizes its weights (inner_product_param.normalize), which no Convolution does");
  const int axis = p.axis() < 0 ? p.axis() + axes : p.axis();
  require(axis == 1, "it reads from axis ", p.axis(),
          " on; a convolution takes the place of one that reads whole samples, axis: 1");
  LayerParameter made = layer;
  made.set_type("Convolution");
  made.clear_inner_product_param();
  if (p.transpose()) made.clear_quantization_param();  // which has no effect there
  ConvolutionParameter* to = made.mutable_convolution_param();
  to->set_num_output(p.num_output());
  if (!p.bias_term()) to->set_bias_term(false);
  if (p.has_weight_filler()) *to->mutable_weight_filler() = p.weight_filler();
  if (p.has_bias_filler()) *to->mutable_bias_filler() = p.bias_filler();
  const auto height = static_cast<uint32_t>(image[1]), width = static_cast<uint32_t>(image[2]);
  if (height == width) {
    to->add_kernel_size(height);
  } else {
    to->set_kernel_h(height);
    to->set_kernel_w(width);
  }
  if (made.blobs_size() > 0) {
    const Shape filters{p.num_output(), image[0], image[1], image[2]};
    const Shape rows = p.transpose() ? Shape{filters.count(1), p.num_output()}
                                     : Shape{p.num_output(), filters.count(1)};
    std::vector<float> values = given_values(layer, 0, rows);
    if (p.transpose()) values = transposed(values, rows[0], rows[1]);
    set_blob(filters, values, made.mutable_blobs(0));
  }
  return made;
}

LayerParameter for_maps(const LayerParameter& layer) {
  const LayerFacts facts = facts_of(layer.type());
  if (facts.elementwise || facts.kind == LayerKind::sink) return layer;
  if (!facts.along_channels)
    fail(
        "it reads scores that become a map; besides InnerProduct and layers that treat each value "
        "by itself (activations, Dropout, Eltwise) only ",
        join(channelwise_types(), ", "), " are known to work on each position of a map");
  LayerParameter made = layer;
  std::vector<const FieldDescriptor*> fields;
  made.GetReflection()->ListFields(made, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      name_channels(made.GetReflection()->MutableMessage(&made, field));
  }
  return made;
}

}  // namespace crema
