#include "exchange/onnx/operator_import.h"

#include <algorithm>

#include "base/visible.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/input.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

void keep_parameters(LayerParameter* layer, int count) {
  for (int i = 0; i < count; ++i) {
    ParamSpec* const kept = layer->add_param();
    kept->set_lr_mult(0);
    kept->set_decay_mult(0);
  }
}

OperatorImport::OperatorImport(ImportGraph& graph, const onnx::NodeProto& node, int opset,
                               const std::map<std::string, int>& readers)
    : graph_(graph), node_(node), opset_(opset), readers_(readers) {}

const ImportValue& OperatorImport::value(int i) const {
  require(has(i), "input ", i + 1, " is missing");
  return graph_.values.at(node_.input(i));
}

bool OperatorImport::all_constant() const {
  for (int i = 0; i < inputs(); ++i)
    if (has(i) && !is_constant(i)) return false;
  return true;
}

const OnnxTensor& OperatorImport::constant(int i, const char* what) const {
  require(has(i), "input ", i + 1, ", ", what, ", is missing");
  require(is_constant(i), what, " (\"", visible(node_.input(i)),
          "\") must be a constant, but is computed");
  return *value(i).constant;
}

float OperatorImport::number(int i, const char* what) const {
  const OnnxTensor& tensor = constant(i, what);
  require(tensor.count() == 1, what, " has ", tensor.count(), " values, not one");
  return static_cast<float>(tensor.at(0));
}

std::string OperatorImport::blob(int i) {
  require(!value(i).is_index, "no layer rounds values to whole numbers");
  return index_blob(i);
}

std::string OperatorImport::index_blob(int i) {
  value(i);
  ImportValue& value = graph_.values.at(node_.input(i));
  if (value.pad) {
    value.blob = padded(value.blob, *value.pad);
    made_.erase(value.blob);
    value.pad = nullptr;
  } else if (value.blob.empty()) {
    require(value.shape.count() > 0, "the constant \"", visible(node_.input(i)),
            "\" has no values");
    value.blob = parameter(value.shape, value.constant->as_floats());
    made_.erase(value.blob);
  }
  return value.blob;
}

bool OperatorImport::wanted(int output) const {
  if (output >= outputs() || node_.output(output).empty()) return false;
  return readers_.count(node_.output(output)) > 0;
}

void OperatorImport::only_outputs(int count) const {
  for (int i = count; i < outputs(); ++i)
    require(!wanted(i), "output ", i + 1, ", \"", visible(node_.output(i)),
            "\", is read, but no layer computes it");
}

const onnx::AttributeProto* OperatorImport::attribute(const std::string& name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

int64_t OperatorImport::int_of(const std::string& name, int64_t otherwise) const {
  const onnx::AttributeProto* const found = attribute(name);
  return found ? found->i() : otherwise;
}

float OperatorImport::float_of(const std::string& name, float otherwise) const {
  const onnx::AttributeProto* const found = attribute(name);
  return found ? found->f() : otherwise;
}

std::string OperatorImport::string_of(const std::string& name, const std::string& otherwise) const {
  const onnx::AttributeProto* const found = attribute(name);
  return found ? found->s() : otherwise;
}

std::vector<int64_t> OperatorImport::ints_of(const std::string& name) const {
  const onnx::AttributeProto* const found = attribute(name);
  if (!found) return {};
  return {found->ints().begin(), found->ints().end()};
}

std::vector<float> OperatorImport::floats_of(const std::string& name) const {
  const onnx::AttributeProto* const found = attribute(name);
  if (!found) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> OperatorImport::strings_of(const std::string& name) const {
  const onnx::AttributeProto* const found = attribute(name);
  if (!found) return {};
  return {found->strings().begin(), found->strings().end()};
}

OnnxTensor OperatorImport::tensor_of(const std::string& name) const {
  const onnx::AttributeProto* const found = attribute(name);
  require(found != nullptr && found->t().data_location() != onnx::TensorProto::EXTERNAL,
          "attribute ", name, " is missing, or in another file");
  return read_onnx_tensor(found->t(), "", name);
}

std::vector<int64_t> OperatorImport::ints_or_input(const std::string& name, int input,
                                                   int since) const {
  if (opset_ < since) return ints_of(name);
  if (!has(input)) return {};
  return ints(input, name.c_str());
}

int OperatorImport::axis_in(int64_t axis, int axes) {
  require(axis >= -axes && axis < axes, "axis ", axis, " is out of range for ", axes, " axes");
  return static_cast<int>(axis < 0 ? axis + axes : axis);
}

// PyTorch names weights "conv1.weight", and the node of its exporter "node_Conv_12".
std::string OperatorImport::base_name() const {
  const std::string suffix = ".weight";
  if (inputs() > 1 && is_constant(1) && ends_with(node_.input(1), suffix) &&
      node_.input(1).size() > suffix.size())
    return node_.input(1).substr(0, node_.input(1).size() - suffix.size());
  if (!node_.name().empty()) return node_.name();
  for (const std::string& output : node_.output())
    if (!output.empty()) return output;
  return node_.op_type();
}

std::string OperatorImport::layer(const std::string& type, const std::vector<std::string>& bottoms,
                                  const FillLayer& fill, std::vector<LayerBlob> blobs) {
  const std::string wish = cat(base_name(), "/", lower_case(type));
  const std::string top = graph_.unique_blob(wish);
  graph_.add(type, graph_.unique_layer(wish), bottoms, {top}, fill, std::move(blobs));
  made_.insert(top);
  return top;
}

std::vector<std::string> OperatorImport::layer_with_tops(const std::string& type,
                                                         const std::vector<std::string>& bottoms,
                                                         int tops, const FillLayer& fill,
                                                         std::vector<LayerBlob> blobs) {
  const std::string wish = cat(base_name(), "/", lower_case(type));
  std::vector<std::string> names;
  for (int i = 0; i < tops; ++i) names.push_back(graph_.unique_blob(wish));
  graph_.add(type, graph_.unique_layer(wish), bottoms, names, fill, std::move(blobs));
  made_.insert(names.begin(), names.end());
  return names;
}

std::string OperatorImport::unsupported(const std::string& type,
                                        const std::vector<std::string>& bottoms, const Shape& shape,
                                        const std::string& why) {
  const std::string wish = cat(base_name(), "/", lower_case(type));
  const std::string top = graph_.unique_blob(wish);
  graph_.add_unsupported(type, graph_.unique_layer(wish), bottoms, top, shape, why);
  made_.insert(top);
  return top;
}

std::string OperatorImport::power(const std::string& x, float power, float scale, float shift) {
  if (power == 1 && scale == 1 && shift == 0) return x;
  return layer("Power", {x}, [&](LayerParameter* layer) {
    PowerParameter* const p = layer->mutable_power_param();
    if (power != 1) p->set_power(power);
    if (scale != 1) p->set_scale(scale);
    if (shift != 0) p->set_shift(shift);
  });
}

// The first extent is that of the bottom where both are alike, so that other batches fit.
std::string OperatorImport::reshape(const std::string& x, const std::vector<int64_t>& extents) {
  const Shape from = blob_shape(x), to(extents);
  if (from == to) return x;
  const bool keeps_batch = from.axes() > 0 && to.axes() > 0 && from[0] == to[0];
  if (keeps_batch && to.axes() == 2 && from.axes() > 2) return layer("Flatten", {x});
  return layer("Reshape", {x}, [&](LayerParameter* layer) {
    BlobShape* const shape = layer->mutable_reshape_param()->mutable_shape();
    for (int axis = 0; axis < to.axes(); ++axis)
      shape->add_dim(axis == 0 && keeps_batch ? 0 : to[axis]);
  });
}

std::string OperatorImport::permute(const std::string& x, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return layer("Permute", {x}, [&](LayerParameter* layer) {
    for (const int64_t axis : order)
      layer->mutable_permute_param()->add_order(static_cast<uint32_t>(axis));
  });
}

std::string OperatorImport::cut(const std::string& x, int axis, int64_t first, int64_t end) {
  const int64_t extent = blob_shape(x)[axis];
  require(first >= 0 && first < end && end <= extent, "positions ", first, " to ", end, " of axis ",
          axis, " with ", extent, " are not a part of it");
  if (first == 0 && end == extent) return x;
  std::vector<int64_t> points;
  if (first > 0) points.push_back(first);
  if (end < extent) points.push_back(end);
  const std::vector<std::string> parts = layer_with_tops(
      "Slice", {x}, static_cast<int>(points.size()) + 1, [&](LayerParameter* layer) {
        if (axis != 1) layer->mutable_slice_param()->set_axis(axis);
        for (const int64_t point : points)
          layer->mutable_slice_param()->add_slice_point(static_cast<uint32_t>(point));
      });
  const size_t wanted = first > 0 ? 1 : 0;
  std::vector<std::string> rest = parts;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(wanted));
  graph_.add("Silence", graph_.unique_layer(cat(base_name(), "/silence")), rest, {}, {}, {});
  return parts[wanted];
}

std::string OperatorImport::tile(const std::string& x, int axis, int64_t copies) {
  if (copies == 1) return x;
  require(copies > 1 && copies <= kMaxOnnxElements / std::max<int64_t>(blob_shape(x).count(), 1),
          copies, " copies of ", blob_shape(x).brief(), " are none, or too many");
  return layer("Tile", {x}, [&](LayerParameter* layer) {
    if (axis != 1) layer->mutable_tile_param()->set_axis(axis);
    layer->mutable_tile_param()->set_tiles(static_cast<int32_t>(copies));
  });
}

std::string OperatorImport::parameter(const Shape& shape, std::vector<float> values) {
  return layer("Parameter", {},
               [&](LayerParameter* layer) {
                 BlobShape* const to = layer->mutable_parameter_param()->mutable_shape();
                 for (const int64_t extent : shape.dims()) to->add_dim(extent);
               },
               {{shape, std::move(values)}});
}

// An axis with constants in front and behind, or without some of its ends.
std::string OperatorImport::padded_axis(const std::string& x, int axis, int64_t before,
                                        int64_t behind, float value) {
  const int64_t extent = blob_shape(x)[axis];
  const std::string y =
      cut(x, axis, std::max<int64_t>(-before, 0), extent - std::max<int64_t>(-behind, 0));
  std::vector<std::string> parts;
  const auto add = [&](int64_t count) {
    if (count <= 0) return;
    Shape shape = blob_shape(y);
    shape[axis] = count;
    check_folded(shape);
    parts.push_back(parameter(shape, std::vector<float>(shape.count(), value)));
  };
  add(before);
  parts.push_back(y);
  add(behind);
  if (parts.size() == 1) return y;
  return layer("Concat", parts, [&](LayerParameter* layer) {
    if (axis != 1) layer->mutable_concat_param()->set_axis(axis);
  });
}

// Zeros around an image come from a convolution of each channel with a single 1; other padding is
// constants.
std::string OperatorImport::padded(const std::string& x, const PendingPad& pad) {
  const Shape shape = blob_shape(x);
  const bool of_image = shape.axes() > 2 && pad.before[0] == 0 && pad.behind[0] == 0 &&
                        pad.before[1] == 0 && pad.behind[1] == 0 && std::abs(pad.value) < 1e6f;
  if (!of_image) {
    std::string y = x;
    for (int axis = 0; axis < shape.axes(); ++axis)
      if (pad.before[axis] != 0 || pad.behind[axis] != 0)
        y = padded_axis(y, axis, pad.before[axis], pad.behind[axis], pad.value);
    return y;
  }
  std::string y = power(x, 1, 1, -pad.value);
  std::vector<int64_t> pads;
  for (int axis = 2; axis < shape.axes(); ++axis)
    pads.push_back(std::max({pad.before[axis], pad.behind[axis], int64_t{0}}));
  const int64_t channels = shape[1];
  Shape filters{channels, 1};
  for (size_t i = 0; i < pads.size(); ++i) filters.push_back(1);
  if (*std::max_element(pads.begin(), pads.end()) > 0) {
    y = layer("Convolution", {y},
              [&](LayerParameter* layer) {
                ConvolutionParameter* const p = layer->mutable_convolution_param();
                p->set_num_output(static_cast<uint32_t>(channels));
                p->set_group(static_cast<uint32_t>(channels));
                p->set_bias_term(false);
                p->add_kernel_size(1);
                for (const int64_t extent : pads) p->add_pad(static_cast<uint32_t>(extent));
              },
              {{filters, std::vector<float>(channels, 1)}});
  }
  for (int axis = 2; axis < shape.axes(); ++axis) {
    const int64_t first = pads[axis - 2] - pad.before[axis];
    y = cut(y, axis, first, first + pad.before[axis] + shape[axis] + pad.behind[axis]);
  }
  return power(y, 1, 1, pad.value);
}

// A blob of this operator gets the name of the output, and the layer that of the node.
void OperatorImport::give(const std::string& blob, int output) {
  if (output >= outputs() || node_.output(output).empty()) return;
  const std::string& name = node_.output(output);
  ImportValue value;
  value.blob = blob;
  value.shape = graph_.shape_of(blob);
  if (made_.count(blob) > 0) {
    graph_.rename_top(blob, name);
    made_.erase(blob);
    value.blob = name;
    if (output == 0) {
      ImportedLayer* const maker = graph_.maker_of(name);
      graph_.release_layer(maker->message.name());
      maker->message.set_name(graph_.unique_layer(base_name()));
    }
  }
  graph_.values[name] = std::move(value);
}

void OperatorImport::give_integers(const std::string& blob, int output) {
  give(blob, output);
  if (output < outputs()) graph_.values[node_.output(output)].is_integer = true;
}

void OperatorImport::give_index(const std::string& blob, int output) {
  give(blob, output);
  if (output < outputs()) graph_.values[node_.output(output)].is_index = true;
}

void OperatorImport::give(OnnxTensor constant, int output) {
  if (output >= outputs() || node_.output(output).empty()) return;
  ImportValue value;
  value.shape = constant.shape;
  value.is_integer = constant.is_int;
  value.constant = std::make_shared<OnnxTensor>(std::move(constant));
  graph_.values[node_.output(output)] = std::move(value);
}

void OperatorImport::pass_on(int input, int output) {
  if (output >= outputs() || node_.output(output).empty()) return;
  const ImportValue passed = value(input);
  graph_.values[node_.output(output)] = passed;
}

void OperatorImport::give_padded(const std::string& blob, PendingPad pad) {
  ImportValue value;
  value.blob = blob;
  value.shape = graph_.shape_of(blob);
  for (int axis = 0; axis < value.shape.axes(); ++axis) {
    value.shape[axis] += pad.before[axis] + pad.behind[axis];
    require(value.shape[axis] > 0, "nothing is left of axis ", axis);
  }
  value.pad = std::make_shared<PendingPad>(std::move(pad));
  graph_.values[node_.output(0)] = std::move(value);
}

}  // namespace crema
