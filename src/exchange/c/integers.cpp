#include "exchange/c/integers.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "exchange/onnx/onnx_tensor.h"

namespace crema {

namespace {

using onnx::NodeProto;
using onnx::TensorProto;

// Sums of 32 bits have room for so many products of bytes, a bias, and what makes x unsigned.
constexpr int64_t kMostProducts = 32768, kLargestBias = int64_t{1} << 29;

int64_t attribute_of(const NodeProto& node, const std::string& name, int64_t otherwise) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name)
      return attribute.type() == onnx::AttributeProto::FLOAT
                 ? static_cast<int64_t>(attribute.f() * 1000)
                 : attribute.i();
  return otherwise;
}

class IntegerFusion {
 public:
  explicit IntegerFusion(onnx::GraphProto* graph)
      : graph_(*graph), nodes_(graph->node().begin(), graph->node().end()) {
    for (const onnx::ValueInfoProto& output : graph->output()) results_.insert(output.name());
    for (int i = 0; i < graph->initializer_size(); ++i)
      initializers_[graph->initializer(i).name()] = i;
  }

  void run() {
    bool has_integers = false;
    for (const NodeProto& node : nodes_) has_integers |= node.op_type() == "DequantizeLinear";
    if (!has_integers) return;
    index();
    for (NodeProto& node : nodes_)
      if (node.op_type() == "Conv" || node.op_type() == "Gemm") fuse_product(&node);
    remove_unread();
    fold_constants();
    while (move_rounding()) index();
    graph_.mutable_node()->Assign(nodes_.begin(), nodes_.end());
  }

 private:
  void index() {
    makers_.clear();
    readers_.clear();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& output : nodes_[i].output()) makers_[output] = i;
      for (const std::string& input : nodes_[i].input()) ++readers_[input];
      for (const onnx::AttributeProto& attribute : nodes_[i].attribute())
        for (const NodeProto& inner : attribute.g().node())
          for (const std::string& input : inner.input()) readers_[input] += 2;
    }
  }

  const NodeProto* maker_of(const std::string& name, const char* type) const {
    const auto found = makers_.find(name);
    if (found == makers_.end() || nodes_[found->second].op_type() != type) return nullptr;
    return &nodes_[found->second];
  }

  const TensorProto* constant(const std::string& name, TensorProto::DataType type) const {
    const auto found = initializers_.find(name);
    if (found == initializers_.end()) return nullptr;
    const TensorProto& tensor = graph_.initializer(found->second);
    return tensor.data_type() == type ? &tensor : nullptr;
  }

  std::vector<float> steps_of(const NodeProto& dequantize) const {
    const TensorProto* const steps = constant(dequantize.input(1), TensorProto::FLOAT);
    if (steps == nullptr || (steps->dims_size() > 0 && attribute_of(dequantize, "axis", 1) != 0))
      return {};
    return read_onnx_tensor(*steps, "", steps->name()).floats;
  }

  // The input of a product that reads integers, weights of integers and a bias that fits; nothing else.
  void fuse_product(NodeProto* node) const {
    const NodeProto *const x = maker_of(node->input(0), "DequantizeLinear"),
                           *const w = maker_of(node->input(1), "DequantizeLinear");
    if (x == nullptr || w == nullptr || maker_of(x->input(0), "QuantizeLinear") == nullptr) return;
    const TensorProto* const weights = constant(w->input(0), TensorProto::INT8);
    const std::vector<float> x_step = steps_of(*x), w_steps = steps_of(*w);
    if (weights == nullptr || x_step.size() != 1 || w_steps.empty()) return;
    const bool gemm = node->op_type() == "Gemm";
    if (gemm &&
        (attribute_of(*node, "transA", 0) != 0 || attribute_of(*node, "transB", 0) != 1 ||
         attribute_of(*node, "alpha", 1000) != 1000 || attribute_of(*node, "beta", 1000) != 1000))
      return;
    const int64_t rows = weights->dims(0);
    int64_t products = 1;
    for (int axis = 1; axis < weights->dims_size(); ++axis) products *= weights->dims(axis);
    if (products > kMostProducts) return;
    const std::optional<std::string> bias = bias_of(*node, rows, x_step[0], w_steps);
    if (!bias) return;
    const std::vector<std::string> inputs = {x->input(0), x->input(1), w->input(0), w->input(1),
                                             *bias};
    node->set_op_type(gemm ? "QuantizedGemm" : "QuantizedConv");
    node->mutable_input()->Assign(inputs.begin(), inputs.end());
  }

  std::optional<std::string> bias_of(const NodeProto& node, int64_t rows, float x_step,
                                     const std::vector<float>& w_steps) const {
    if (node.input_size() < 3 || node.input(2).empty()) return "";
    if (const TensorProto* const bias = constant(node.input(2), TensorProto::FLOAT))
      return bias->dims_size() == 1 && bias->dims(0) == rows ? std::optional(bias->name())
                                                             : std::nullopt;
    const NodeProto* const made = maker_of(node.input(2), "DequantizeLinear");
    if (made == nullptr) return {};
    const TensorProto* const integers = constant(made->input(0), TensorProto::INT32);
    const std::vector<float> steps = steps_of(*made);
    if (integers == nullptr || steps.size() != w_steps.size()) return {};
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i] != x_step * w_steps[i]) return {};
    for (const int64_t value : read_onnx_tensor(*integers, "", integers->name()).ints)
      if (std::abs(value) > kLargestBias) return {};
    return integers->name();
  }

  // What only led to a product that reads integers now.
  void remove_unread() {
    for (size_t left = nodes_.size() + 1; left > nodes_.size();) {
      left = nodes_.size();
      index();
      std::erase_if(nodes_, [&](const NodeProto& node) {
        return node.op_type() == "DequantizeLinear" && readers_[node.output(0)] == 0 &&
               results_.count(node.output(0)) == 0;
      });
    }
  }

  void fold_constants() {
    std::erase_if(nodes_, [&](const NodeProto& node) {
      const auto found =
          initializers_.find(node.op_type() == "DequantizeLinear" ? node.input(0) : "");
      if (found == initializers_.end()) return false;
      const TensorProto integers = graph_.initializer(found->second);
      const std::vector<float> steps = steps_of(node);
      if (steps.empty()) return false;
      const OnnxTensor values = read_onnx_tensor(integers, "", integers.name());
      TensorProto& floats = *graph_.add_initializer();
      floats.set_name(node.output(0));
      floats.set_data_type(TensorProto::FLOAT);
      *floats.mutable_dims() = integers.dims();
      const size_t size = values.ints.size() / steps.size();
      for (size_t i = 0; i < values.ints.size(); ++i)
        floats.add_float_data(static_cast<float>(values.ints[i]) *
                              steps[steps.size() > 1 ? i / size : 0]);
      initializers_[floats.name()] = graph_.initializer_size() - 1;
      return true;
    });
    index();
  }

  // nullptr for a value that something else reads, too.
  const NodeProto* private_maker(const std::string& name) const {
    const auto made = makers_.find(name);
    const auto readers = readers_.find(name);
    if (made == makers_.end() || readers == readers_.end() || readers->second != 1 ||
        results_.count(name) > 0)
      return nullptr;
    return &nodes_[made->second];
  }

  static bool is_product(const NodeProto& node) {
    return node.op_type() == "QuantizedConv" || node.op_type() == "QuantizedGemm";
  }

  // A product that writes this value, or the activation of one, can write integers instead.
  bool ends_at_product(const NodeProto& node) const {
    if (is_product(node)) return true;
    static const std::set<std::string> kActivations = {"Relu", "LeakyRelu", "Clip"};
    if (kActivations.count(node.op_type()) == 0) return false;
    const NodeProto* const before = private_maker(node.input(0));
    for (int i = 1; i < node.input_size(); ++i)
      if (!node.input(i).empty() && initializers_.count(node.input(i)) == 0) return false;
    return before != nullptr && is_product(*before);
  }

  // Rounding the operator's input, or all of them, gives the same as rounding its result.
  static bool commutes(const NodeProto& node) {
    static const std::set<std::string> kOneInput = {"Relu", "MaxPool", "Reshape", "Flatten"};
    return node.op_type() == "Concat" ||
           (kOneInput.count(node.op_type()) > 0 && node.output_size() == 1);
  }

  bool leads_to_product(const std::string& name) const {
    const NodeProto* const node = private_maker(name);
    if (node == nullptr) return false;
    if (ends_at_product(*node)) return true;
    if (!commutes(*node)) return false;
    if (node->op_type() != "Concat") return leads_to_product(node->input(0));
    for (const std::string& input : node->input())
      if (!leads_to_product(input)) return false;
    return true;
  }

  // Moves one QuantizeLinear by one operator. False: all are where they should be.
  bool move_rounding() {
    for (size_t at = 0; at < nodes_.size(); ++at) {
      if (nodes_[at].op_type() != "QuantizeLinear" || !leads_to_product(nodes_[at].input(0)))
        continue;
      const size_t before = makers_.at(nodes_[at].input(0));
      if (ends_at_product(nodes_[before])) continue;
      exchange(before, at);
      return true;
    }
    return false;
  }

  void exchange(size_t before, size_t at) {
    const NodeProto rounding = nodes_[at];
    NodeProto node = nodes_[before];
    if (node.op_type() == "Relu" && constant(rounding.input(2), TensorProto::UINT8) != nullptr) {
      nodes_[at].set_input(0, node.input(0));  // uint8 has no negative values
      nodes_.erase(nodes_.begin() + static_cast<int64_t>(before));
      return;
    }
    std::vector<NodeProto> added;
    const int inputs = node.op_type() == "Concat" ? node.input_size() : 1;
    for (int i = 0; i < inputs; ++i) {
      NodeProto& one = added.emplace_back(rounding);
      one.set_input(0, node.input(i));
      one.set_output(0, cat(rounding.output(0), ".", names_++));
      node.set_input(i, one.output(0));
    }
    node.set_output(0, rounding.output(0));
    nodes_[at] = std::move(node);
    nodes_.erase(nodes_.begin() + static_cast<int64_t>(before));
    nodes_.insert(nodes_.begin() + static_cast<int64_t>(before), added.begin(), added.end());
  }

  onnx::GraphProto& graph_;
  std::vector<NodeProto> nodes_;
  std::set<std::string> results_;
  std::map<std::string, int> initializers_, readers_;
  std::map<std::string, size_t> makers_;
  int names_ = 0;
};

}  // namespace

void fuse_integers(onnx::GraphProto* graph) { IntegerFusion(graph).run(); }

}  // namespace crema
