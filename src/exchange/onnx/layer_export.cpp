#include "exchange/onnx/layer_export.h"

#include <algorithm>
#include <limits>
#include <map>

#include "exchange/onnx/rounding.h"

namespace crema {

std::string parameter_key(const Parameter& parameter) {
  return cat(parameter.layer, ".", parameter.index);
}

bool LayerExport::trains(int i) const {
  return i < parameters() && options_.trained.count(parameter_key(learned(i))) > 0;
}

std::vector<float> LayerExport::values_of(int i) const {
  const Tensor& data = learned(i).data;
  const float* values = data.data<float>();
  return {values, values + data.count()};
}

std::vector<float> LayerExport::parameter_values(int i) const {
  require(!trains(i), "training changes its parameter ", i,
          ", which operators need in another form than the layer; freeze it with param { lr_mult: "
          "0 }");
  return values_of(i);
}

// Layers that share a parameter share the constant.
std::string LayerExport::parameter(int i) { return parameter(i, parameter_shape(i).dims()); }

std::string LayerExport::rounded(const std::string& x) {
  return quantization_ && quantization_->x ? round_values(graph_, x, *quantization_->x) : x;
}

std::string LayerExport::weights() {
  if (!quantization_ || !quantization_->w) return parameter(0);
  return round_rows(graph_, name("weights"), parameter_shape(0), parameter_values(0),
                    *quantization_->w);
}

std::string LayerExport::bias() {
  if (!quantization_ || !quantization_->w || !quantization_->x) return parameter(1);
  return round_bias(graph_, name("bias"), parameter_values(1), *quantization_);
}

std::string LayerExport::parameter(int i, const std::vector<int64_t>& shape) {
  const std::string key = parameter_key(learned(i));
  const std::string name = graph_.shared_floats(key, shape, [&] { return values_of(i); });
  if (trains(i)) graph_.set_trained(name, key);
  return name;
}

std::string LayerExport::result(const std::string& op, const std::vector<std::string>& inputs,
                                const OnnxAttributes& attributes, bool to_top) {
  const std::string to = to_top ? top() : graph_.unique(cat(message().name(), ".", op));
  graph_.add(op, inputs, {to}, attributes);
  return to;
}

std::string LayerExport::node(const std::string& op, const std::vector<std::string>& inputs,
                              const OnnxAttributes& attributes) {
  return result(op, inputs, attributes, false);
}

void LayerExport::write(const std::string& op, const std::vector<std::string>& inputs,
                        const OnnxAttributes& attributes, int top) {
  graph_.add(op, inputs, {this->top(top)}, attributes);
}

std::string LayerExport::transposed(int i) {
  const Shape& shape = parameter_shape(i);
  const int64_t rows = shape[0], columns = shape.count(1);
  const std::vector<float> values = parameter_values(i);
  std::vector<float> result(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[column * rows + row] = values[row * columns + column];
  return floats({columns, rows}, std::move(result));
}

std::string LayerExport::cast(const std::string& x, onnx::TensorProto::DataType type, bool to_top) {
  return result("Cast", {x}, {{"to", int64_t{type}}}, to_top);
}

std::string LayerExport::reshape(const std::string& x, const std::vector<int64_t>& extents,
                                 bool to_top) {
  return result("Reshape", {x, ints(extents)}, {}, to_top);
}

std::string LayerExport::slice(const std::string& x, int axis, int64_t first, int64_t end,
                               bool to_top) {
  return result("Slice", {x, ints({first}), ints({end}), ints({axis})}, {}, to_top);
}

std::string LayerExport::reduce(const std::string& op, const std::string& x,
                                const std::vector<int64_t>& axes, bool keep_axes, bool to_top) {
  const OnnxAttribute keep{"keepdims", int64_t{keep_axes}};
  // ReduceSum takes its axes as an input since opset 13, the others since 18.
  const bool as_input = opset() >= (op == "ReduceSum" ? 13 : 18);
  if (as_input) return result(op, {x, ints(axes)}, {keep}, to_top);
  return result(op, {x}, {{"axes", axes}, keep}, to_top);
}

std::string LayerExport::unsqueeze(const std::string& x, const std::vector<int64_t>& axes) {
  if (opset() >= 13) return node("Unsqueeze", {x, ints(axes)});
  return node("Unsqueeze", {x}, {{"axes", axes}});
}

std::string LayerExport::squeeze(const std::string& x, const std::vector<int64_t>& axes) {
  if (opset() >= 13) return node("Squeeze", {x, ints(axes)});
  return node("Squeeze", {x}, {{"axes", axes}});
}

std::string LayerExport::pad(const std::string& x, const std::vector<int64_t>& before_and_after,
                             float value) {
  return node("Pad", {x, ints(before_and_after), scalar(value)},
              {{"mode", std::string("constant")}});
}

std::string LayerExport::clip(const std::string& x, float low, float high, bool to_top) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::vector<std::string> inputs = {x, low == -kNone ? "" : scalar(low)};
  if (high != kNone) inputs.push_back(scalar(high));
  return result("Clip", inputs, {}, to_top);
}

std::vector<int64_t> LayerExport::extents_of(const OnnxValue& value) const {
  std::vector<int64_t> extents = value.shape.dims();
  int grown = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (!value.varies(static_cast<int>(axis))) continue;
    extents[axis] = -1;
    ++grown;
  }
  if (grown > 1) {
    require_fixed_batch("several of its extents grow with the batch");
    refuse("several of its extents depend on data", "end the net before it");
  }
  return extents;
}

void LayerExport::reshape_to_top(const std::string& x, int top) {
  write("Reshape", {x, ints(extents_of(top_value(top)))}, {}, top);
}

void LayerExport::any_extent(int axis) {
  std::map<int, Shape> shapes;  // new shapes, if the extent is larger by one
  const auto change = [&](int id, const Shape& shape) {
    OnnxValue& value = values_[id];
    value.of_data.resize(value.shape.axes());
    for (int i = 0; i < value.shape.axes() && i < shape.axes(); ++i)
      if (shape[i] != value.shape[i]) value.of_data[i] = true;
    shapes[id] = shape;
  };
  for (const int top : node_.tops) {
    Shape larger = values_[top].shape;
    ++larger[axis];
    change(top, larger);
  }
  for (const Node& node : net_.nodes) {
    std::vector<Shape> bottoms;
    bool differs = false;
    for (const int id : node.bottoms) {
      const auto found = shapes.find(id);
      differs = differs || found != shapes.end();
      bottoms.push_back(found != shapes.end() ? found->second : values_[id].shape);
    }
    if (!differs) continue;
    std::vector<Shape> tops;
    try {
      tops = node.layer->infer(bottoms).tops;
    } catch (const Error& error) {
      fail("how much it gives depends on data, but layer \"", node.message.name(),
           "\" needs a fixed number: ", error.what());
    }
    for (size_t i = 0; i < tops.size(); ++i)
      if (tops[i] != values_[node.tops[i]].shape) change(node.tops[i], tops[i]);
  }
}

void LayerExport::write_constant_tops() {
  for (int i = 0; i < tops(); ++i) {
    const std::vector<bool>& of_batch = top_value(i).of_batch;
    if (std::find(of_batch.begin(), of_batch.end(), true) != of_batch.end())
      require_fixed_batch("its values are constants for one size of the batch");
    write("Identity", {floats(top_shape(i).dims(), blob_values_(node_.tops[i]))}, {}, i);
  }
}

bool LayerExport::depends_on_batch() const {
  if (!options_.any_batch) return false;
  const auto depends = [&](int id) {
    const std::vector<bool>& of_batch = values_[id].of_batch;
    return std::find(of_batch.begin(), of_batch.end(), true) != of_batch.end();
  };
  return std::any_of(node_.bottoms.begin(), node_.bottoms.end(), depends) ||
         std::any_of(node_.tops.begin(), node_.tops.end(), depends);
}

void LayerExport::refuse_noise_in_training() const {
  if (options_.training) refuse("it draws random numbers", "use Dropout, or leave it out");
}

void LayerExport::require_fixed_batch(const std::string& why) const {
  if (depends_on_batch())
    throw NeedsFixedBatch(cat(node_.place.where, ": layer \"", message().name(), "\": ", why));
}

void LayerExport::refuse(const std::string& why, const std::string& help) const {
  fail(options_.training ? "C functions do not train it: " : "ONNX has no operator for it: ", why,
       "; ", help);
}

}  // namespace crema
