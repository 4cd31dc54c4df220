// CLowering: turns the operators of an ONNX graph into the calls of one function.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/c/operator_emit.h"
#include "exchange/c/unroll.h"

namespace crema {

class CLowering {
 public:
  // Adds to the program and to the routine, which is the program's. `trained`: keys of the parameters that
  // training changes, by the names of the model's constants.
  CLowering(Context& context, const onnx::ModelProto& model,
            const std::map<std::string, std::string>& trained, CProgram* program, CRoutine* routine,
            CNames* names);

  // Adds what leads to the model's results, which become outputs of the caller if `returns`.
  void run(bool returns);

  EmitGraph& graph() { return graph_; }
  int opset() const { return static_cast<int>(model_.opset_import(0).version()); }
  // The operators that run() has found to be needed and not constant, in order.
  const std::vector<const onnx::NodeProto*>& operators() const { return operators_; }
  // Calls the function; an Error gets the position of the operator's layer.
  static void at_operator(const onnx::NodeProto& node, const std::function<void()>& function);

 private:
  void find_needed();
  void add_reader(const onnx::NodeProto& node);
  void add_constant(const onnx::TensorProto& tensor);
  void add_input(const onnx::ValueInfoProto& input);
  void add(const onnx::NodeProto& node);
  void add_scan(const onnx::NodeProto& node);
  bool fold(const onnx::NodeProto& node);
  void add_output(const std::string& name);

  const onnx::ModelProto& model_;
  const std::map<std::string, std::string>& trained_;
  EmitGraph graph_;
  std::set<const onnx::NodeProto*> needed_;
  std::vector<const onnx::NodeProto*> operators_;
  std::deque<UnrolledScan> unrolled_;
};

}  // namespace crema
