// LayerExport: what the function that writes a type of layer as ONNX operators sees and does. Each
// type has one such function, registered with EXPORT_LAYER in a file of exchange/onnx/layers.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "exchange/onnx/onnx_graph.h"
#include "exchange/quantize/quantized_node.h"
#include "net/graph/graph.h"

namespace crema {

struct OnnxOptions {
  int opset = 17;
  // BatchNorm, Scale and Bias become part of the convolution before them.
  bool fold = true;
  // The batch is a named axis; otherwise it has the net's size.
  bool any_batch = true;
  // For export to C, which has operators of its own for some layers.
  bool for_c = false;
  // For export to C: parameters that training changes, by parameter_key(). They stay constants of their
  // own, and nothing is folded into them.
  std::set<std::string> trained;
  // The net is one in phase TRAIN: the layers that lead to its losses, with operators that only C
  // functions have for losses and Dropout.
  bool training = false;
};

// "conv1.0": the layer that owns a parameter, and which of its parameters it is.
std::string parameter_key(const Parameter& parameter);

// The values of a blob after a forward pass with inputs of zero, row-major.
using BlobValues = std::function<std::vector<float>(int value)>;

// A value of the net: its name in ONNX, and which of its extents grow with the batch.
struct OnnxValue {
  std::string name;
  Shape shape;
  std::vector<bool> of_batch;
  std::vector<bool> of_data;  // extents that depend on values; empty: none

  // The extent in the model is open.
  bool varies(int axis) const { return of_batch[axis] || (!of_data.empty() && of_data[axis]); }
};

class LayerExport {
 public:
  LayerExport(OnnxGraph& graph, const OnnxOptions& options, const Graph& net, const Node& node,
              std::vector<OnnxValue>& values, BlobValues blob_values)
      : graph_(graph),
        options_(options),
        net_(net),
        node_(node),
        values_(values),
        blob_values_(std::move(blob_values)),
        quantization_(quantization_of(node, net)) {}

  const LayerParameter& message() const { return node_.message; }
  const Layer& layer() const { return *node_.layer; }
  const std::string& type() const { return node_.message.type(); }
  const OnnxOptions& options() const { return options_; }
  int opset() const { return options_.opset; }
  OnnxGraph& graph() { return graph_; }

  int bottoms() const { return static_cast<int>(node_.bottoms.size()); }
  int tops() const { return static_cast<int>(node_.tops.size()); }
  const OnnxValue& bottom_value(int i = 0) const { return values_[node_.bottoms[i]]; }
  const OnnxValue& top_value(int i = 0) const { return values_[node_.tops[i]]; }
  const std::string& bottom(int i = 0) const { return bottom_value(i).name; }
  const std::string& top(int i = 0) const { return top_value(i).name; }
  const Shape& bottom_shape(int i = 0) const { return bottom_value(i).shape; }
  const Shape& top_shape(int i = 0) const { return top_value(i).shape; }

  float loss_weight(int top = 0) const { return net_.values[node_.tops[top]].loss_weight; }

  // The type of the layer that makes this bottom.
  const std::string& maker_of(int bottom) const {
    return net_.nodes[net_.values[node_.bottoms[bottom]].producer].message.type();
  }

  // Parameters: row-major values, and a constant of them, in their own shape or in another one.
  int parameters() const { return static_cast<int>(node_.parameters.size()); }
  const Shape& parameter_shape(int i) const { return net_.parameters[node_.parameters[i]].shape; }
  // Error for values of a parameter that training changes.
  std::vector<float> parameter_values(int i) const;
  bool trains(int i) const;
  std::string parameter(int i);
  std::string parameter(int i, const std::vector<int64_t>& shape);

  // What the product of a Convolution or InnerProduct reads, rounded if it has a quantization_param: a
  // bottom, perhaps in another shape; weights and bias, which are parameters 0 and 1.
  std::string rounded(const std::string& x);
  std::string weights();
  std::string bias();

  // Adds an operator with one result, an intermediate value, and returns its name.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {});
  // Adds the operator that gives a top.
  void write(const std::string& op, const std::vector<std::string>& inputs,
             const OnnxAttributes& attributes = {}, int top = 0);

  // Constants.
  std::string scalar(float value) { return graph_.floats(name("value"), {}, {value}); }
  std::string floats(const std::vector<int64_t>& shape, std::vector<float> values) {
    return graph_.floats(name("values"), shape, std::move(values));
  }
  std::string ints(const std::vector<int64_t>& values) { return graph_.ints(name("ints"), values); }
  std::string index(int64_t value) { return graph_.ints(name("index"), {value}, true); }
  std::string name(const char* what) const { return message().name() + "." + what; }

  // Parameter i, a matrix, as the right operand of MatMul: its rows as columns.
  std::string transposed(int i);
  std::string cast(const std::string& x, onnx::TensorProto::DataType type, bool to_top = false);

  // Operators whose settings became inputs in later opsets. Results as those of node(), or top 0
  // where `to_top`.
  std::string reshape(const std::string& x, const std::vector<int64_t>& extents,
                      bool to_top = false);
  std::string slice(const std::string& x, int axis, int64_t first, int64_t end,
                    bool to_top = false);
  std::string reduce(const std::string& op, const std::string& x, const std::vector<int64_t>& axes,
                     bool keep_axes, bool to_top = false);
  std::string unsqueeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string squeeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string pad(const std::string& x, const std::vector<int64_t>& before_and_after, float value);
  std::string clip(const std::string& x, float low, float high, bool to_top = false);
  // The extents to which Reshape brings a value of this shape, of any batch: -1 for the one that
  // grows with the batch or depends on data. Error if there are several.
  std::vector<int64_t> extents_of(const OnnxValue& value) const;
  // Reshapes x to the shape of a top.
  void reshape_to_top(const std::string& x, int top = 0);

  // This extent of all tops depends on values; so do those that later layers infer from it.
  void any_extent(int axis);
  // For a layer whose tops do not depend on its bottoms' values: makes them constants.
  void write_constant_tops();

  // Error: ONNX has no operators for what this layer computes. help: what the user may do.
  [[noreturn]] void refuse(const std::string& why, const std::string& help) const;
  // For a layer that draws random numbers in training, which are not written as operators.
  void refuse_noise_in_training() const;
  // For a layer whose operators hold for one size of the batch only: NeedsFixedBatch, if the batch
  // may have any size and something that the layer reads or makes grows with it.
  void require_fixed_batch(const std::string& why) const;

 private:
  const Parameter& learned(int i) const { return net_.parameters[node_.parameters[i]]; }
  std::vector<float> values_of(int i) const;
  std::string result(const std::string& op, const std::vector<std::string>& inputs,
                     const OnnxAttributes& attributes, bool to_top);
  bool depends_on_batch() const;

  OnnxGraph& graph_;
  const OnnxOptions& options_;
  const Graph& net_;
  const Node& node_;
  std::vector<OnnxValue>& values_;
  BlobValues blob_values_;
  const std::optional<LinearQuantization> quantization_;
};

// Thrown by require_fixed_batch() for a batch of any size.
class NeedsFixedBatch : public Error {
 public:
  using Error::Error;
};

struct LayerExporter {
  void (*write)(LayerExport& layer) = nullptr;
  bool training = false;  // it is for OnnxOptions::training only
};
struct LayerExporterTag {};
using LayerExporterRegistry = Registry<LayerExporterTag, LayerExporter>;

// EXPORT_LAYER(ReLU, write_relu);
#define EXPORT_LAYER(Type, function)                  \
  [[maybe_unused]] static const bool exports_##Type = \
      crema::LayerExporterRegistry::add(#Type, {function})
// The same for a layer that only training has.
#define EXPORT_LOSS(Type, function)                   \
  [[maybe_unused]] static const bool exports_##Type = \
      crema::LayerExporterRegistry::add(#Type, {function, true})

}  // namespace crema
