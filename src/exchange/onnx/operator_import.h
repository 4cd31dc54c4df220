// OperatorImport: what the function that reads a type of ONNX operator sees and does. Each has one
// such function, registered with IMPORT_OPERATOR in a file of exchange/onnx/operators; operators on
// constants have one that computes them, registered with FOLD_OPERATOR.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "exchange/onnx/import_graph.h"

namespace crema {

class OperatorImport {
 public:
  OperatorImport(ImportGraph& graph, const onnx::NodeProto& node, int opset,
                 const std::map<std::string, int>& readers);

  const std::string& type() const { return node_.op_type(); }
  int opset() const { return opset_; }
  ImportGraph& graph() { return graph_; }

  // Inputs. Those at the end, and those without a name, may be absent.
  int inputs() const { return node_.input_size(); }
  bool has(int i) const { return i < inputs() && !node_.input(i).empty(); }
  const ImportValue& value(int i) const;
  bool is_constant(int i) const { return has(i) && value(i).constant != nullptr; }
  bool all_constant() const;
  const Shape& shape(int i = 0) const { return value(i).shape; }
  int axes(int i = 0) const { return shape(i).axes(); }
  // A constant; Error unless it is one. `what` names it.
  const OnnxTensor& constant(int i, const char* what) const;
  std::vector<int64_t> ints(int i, const char* what) const { return constant(i, what).as_ints(); }
  // A constant of one element.
  float number(int i, const char* what) const;
  // As a blob: a constant becomes a Parameter layer, pending padding a layer.
  std::string blob(int i = 0);
  // The same for an input whose values a layer rounds towards zero, as it does with indices.
  std::string index_blob(int i);
  // The blob in front of padding that is pending.
  const std::string& unpadded(int i) const { return value(i).blob; }

  int outputs() const { return node_.output_size(); }
  // Whether anything reads it.
  bool wanted(int output) const;
  // Error if something reads an output from this one on.
  void only_outputs(int count) const;

  // Attributes.
  bool has_attribute(const std::string& name) const { return attribute(name) != nullptr; }
  int64_t int_of(const std::string& name, int64_t otherwise) const;
  float float_of(const std::string& name, float otherwise) const;
  std::string string_of(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> ints_of(const std::string& name) const;
  std::vector<float> floats_of(const std::string& name) const;
  std::vector<std::string> strings_of(const std::string& name) const;
  OnnxTensor tensor_of(const std::string& name) const;  // not in another file
  // What is an attribute before `since` and an input from then on. Empty: neither is given.
  std::vector<int64_t> ints_or_input(const std::string& name, int input, int since) const;
  bool given(const std::string& name, int input, int since) const {
    return opset_ < since ? has_attribute(name) : has(input);
  }
  // An axis that may count from the end.
  static int axis_in(int64_t axis, int axes);

  // Adds a layer; the result is its top, an intermediate blob.
  std::string layer(const std::string& type, const std::vector<std::string>& bottoms,
                    const FillLayer& fill = {}, std::vector<LayerBlob> blobs = {});
  std::vector<std::string> layer_with_tops(const std::string& type,
                                           const std::vector<std::string>& bottoms, int tops,
                                           const FillLayer& fill,
                                           std::vector<LayerBlob> blobs = {});
  std::string unsupported(const std::string& type, const std::vector<std::string>& bottoms,
                          const Shape& shape, const std::string& why);
  const Shape& blob_shape(const std::string& blob) const { return graph_.shape_of(blob); }

  // Layers that many operators need. Each may return its bottom.
  std::string power(const std::string& x, float power, float scale, float shift);
  std::string reshape(const std::string& x, const std::vector<int64_t>& extents);
  std::string permute(const std::string& x, const std::vector<int64_t>& order);
  // Positions [first, end) of an axis.
  std::string cut(const std::string& x, int axis, int64_t first, int64_t end);
  std::string tile(const std::string& x, int axis, int64_t copies);
  std::string parameter(const Shape& shape, std::vector<float> values);
  std::string padded(const std::string& x, const PendingPad& pad);
  std::string padded_axis(const std::string& x, int axis, int64_t before, int64_t behind,
                          float value);

  // The output is this blob, or this constant.
  void give(const std::string& blob, int output = 0);
  void give_integers(const std::string& blob, int output = 0);
  void give_index(const std::string& blob, int output = 0);
  void give(OnnxTensor constant, int output = 0);
  // The output is an input.
  void pass_on(int input = 0, int output = 0);
  void give_padded(const std::string& blob, PendingPad pad);

  // Error: no layers compute this.
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(parts...);
  }

 private:
  const onnx::AttributeProto* attribute(const std::string& name) const;
  std::string base_name() const;

  ImportGraph& graph_;
  const onnx::NodeProto& node_;
  const int opset_;
  const std::map<std::string, int>& readers_;
  std::set<std::string> made_;  // intermediate blobs of this operator
};

// Training leaves the layer's parameters as they are.
void keep_parameters(LayerParameter* layer, int count);

struct OperatorFunction {
  void (*run)(OperatorImport& op) = nullptr;
};
struct OperatorImportTag {};
struct OperatorFoldTag {};
using OperatorImportRegistry = Registry<OperatorImportTag, OperatorFunction>;
using OperatorFoldRegistry = Registry<OperatorFoldTag, OperatorFunction>;

// IMPORT_OPERATOR(Relu, read_relu);
#define IMPORT_OPERATOR(Type, function)               \
  [[maybe_unused]] static const bool imports_##Type = \
      crema::OperatorImportRegistry::add(#Type, {function})
// All inputs of the operator are constants, and so are the outputs.
#define FOLD_OPERATOR(Type, function)               \
  [[maybe_unused]] static const bool folds_##Type = \
      crema::OperatorFoldRegistry::add(#Type, {function})

}  // namespace crema
