// GradientEmit: what the function that turns the gradient of a type of ONNX operator into calls of C
// functions sees and does. Each has one such function, registered with EMIT_GRADIENT in a file of
// exchange/c/operators/gradients.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/c/operator_emit.h"

namespace crema {

// The gradients of the values of a function, by their names, while the walk goes backward. Operators that
// read a value give it a part of its gradient each.
struct CGradients {
  std::set<std::string> needed;  // the values that depend on what training changes
  std::map<std::string, std::vector<CArgument>> parts;
};

class GradientEmit : public OperatorEmit {
 public:
  GradientEmit(EmitGraph& graph, const onnx::NodeProto& node, int opset, CGradients* gradients)
      : OperatorEmit(graph, node, opset, "gradient of "), gradients_(*gradients) {}

  // Whether an input needs a gradient.
  bool needs(int input) const;
  // A result of the forward pass.
  CArgument result(int output = 0) const;
  // Whether a loss depends on a result.
  bool has_gradient(int output) const;
  // The gradient of a result: the sum of its parts. Call it before other functions add calls.
  CArgument dy(int output = 0);
  // A new value, which a function writes: this input's part of the gradient. Or one that is there.
  CArgument gradient(int input);
  void pass_on(int input, CArgument part);
  // to = the sum of the parts; `count`: their size.
  CArgument sum_of(const std::vector<CArgument>& parts, int64_t count);

 private:
  CGradients& gradients_;
};

struct GradientEmitter {
  void (*emit)(GradientEmit& op) = nullptr;
};
struct GradientEmitTag {};
using GradientEmitRegistry = Registry<GradientEmitTag, GradientEmitter>;

// EMIT_GRADIENT(Conv, emit_conv_gradient);
#define EMIT_GRADIENT(Type, function)                        \
  [[maybe_unused]] static const bool emits_gradient_##Type = \
      crema::GradientEmitRegistry::add(#Type, {function})

}  // namespace crema
