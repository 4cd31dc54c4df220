#include "exchange/c/unroll.h"

#include <map>
#include <string>

#include "base/error.h"
#include "base/strings.h"

namespace crema {

namespace {

class ScanUnroller {
 public:
  explicit ScanUnroller(const onnx::NodeProto& scan) : scan_(scan) {
    for (const onnx::AttributeProto& attribute : scan.attribute()) {
      if (attribute.name() == "body") body_ = &attribute.g();
      if (attribute.name() == "num_scan_inputs") sequences_ = static_cast<int>(attribute.i());
    }
    require(body_ != nullptr && scan.attribute_size() == 2,
            "it has settings that Crema does not write");
    states_ = scan.input_size() - sequences_;
  }

  UnrolledScan run(int64_t steps) {
    for (const onnx::TensorProto& tensor : body_->initializer()) {
      result_.constants.push_back(tensor);
      names_[tensor.name()] = cat(scan_.name(), ".", tensor.name());
      result_.constants.back().set_name(names_[tensor.name()]);
    }
    std::vector<std::string> state(scan_.input().begin(), scan_.input().begin() + states_);
    const int results = scan_.output_size() - states_;
    std::vector<std::vector<std::string>> collected(results);
    const std::string axis = integers("axis", {0});
    for (int64_t step = 0; step < steps; ++step) {
      const std::string prefix = cat(scan_.name(), ".", step, ".");
      for (int i = 0; i < states_; ++i) names_[body_->input(i).name()] = state[i];
      for (int i = 0; i < sequences_; ++i) {
        const std::string piece = cat(prefix, "piece", i), row = cat(prefix, "row", i);
        add("Slice",
            {scan_.input(states_ + i), integers(cat(step), {step}),
             integers(cat(step + 1), {step + 1}), axis},
            piece);
        add("Squeeze", {piece, axis}, row);
        names_[body_->input(states_ + i).name()] = row;
      }
      for (const onnx::NodeProto& node : body_->node()) add_of_body(node, prefix);
      for (int i = 0; i < states_; ++i) state[i] = names_.at(body_->output(i).name());
      for (int i = 0; i < results; ++i) {
        const std::string row = cat(prefix, "result", i);
        add("Unsqueeze", {names_.at(body_->output(states_ + i).name()), axis}, row);
        collected[i].push_back(row);
      }
    }
    for (int i = 0; i < states_; ++i) add("Identity", {state[i]}, scan_.output(i));
    for (int i = 0; i < results; ++i) {
      add("Concat", collected[i], scan_.output(states_ + i));
      onnx::AttributeProto* const attribute = result_.nodes.back().add_attribute();
      attribute->set_name("axis");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(0);
    }
    return std::move(result_);
  }

 private:
  onnx::NodeProto& add_node() {
    result_.nodes.emplace_back();
    result_.nodes.back().set_doc_string(scan_.doc_string());
    return result_.nodes.back();
  }

  void add(const std::string& op, const std::vector<std::string>& inputs,
           const std::string& output) {
    onnx::NodeProto& node = add_node();
    node.set_name(scan_.name());
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
  }

  void add_of_body(const onnx::NodeProto& from, const std::string& prefix) {
    onnx::NodeProto& node = add_node();
    const std::string doc = node.doc_string();
    node = from;
    node.set_doc_string(doc);
    node.set_name(prefix + from.name());
    for (std::string& input : *node.mutable_input())
      if (names_.count(input) > 0) input = names_[input];  // others are values around the loop
    for (std::string& output : *node.mutable_output()) output = names_[output] = prefix + output;
  }

  std::string integers(const std::string& what, const std::vector<int64_t>& values) {
    std::string& name = integers_[what];
    if (!name.empty()) return name;
    name = cat(scan_.name(), ".number.", what);
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
    result_.constants.push_back(tensor);
    return name;
  }

  const onnx::NodeProto& scan_;
  const onnx::GraphProto* body_ = nullptr;
  int sequences_ = 0, states_ = 0;
  UnrolledScan result_;
  std::map<std::string, std::string> names_, integers_;  // names in the graph, by those in the body
};

}  // namespace

UnrolledScan unroll_scan(const onnx::NodeProto& scan, int64_t steps) {
  return ScanUnroller(scan).run(steps);
}

}  // namespace crema
