// OperatorEmit: what the function that turns a type of ONNX operator into calls of C functions sees and
// does. Each has one such function, registered with EMIT_OPERATOR in a file of exchange/c/operators.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "exchange/c/program.h"
#include "exchange/onnx/operator_import.h"

namespace crema {

// Fields of a C structure, in the order in which they are written.
class CFields {
 public:
  CFields& add(const std::string& name, int64_t value);
  CFields& add(const std::string& name, const std::vector<int64_t>& values);  // an array
  CFields& text(const std::string& name, const std::string& text);
  const std::string& str() const { return text_; }
  // In one line: the value of a field that is a structure.
  std::string inner() const;

 private:
  std::string text_;
};

// What all functions of a file share: its constants, and names that they must not hide.
struct CNames {
  std::set<std::string> taken;
  std::map<std::string, std::vector<int>> constants;  // the program's, by the name they were wished
  std::map<std::string, int> trained;                 // values, by the keys of parameters
};

// What the walk over the graph of a function knows of it, for all operators.
class EmitGraph {
 public:
  EmitGraph(Context& context, CProgram* program, CRoutine* routine, CNames* names)
      : reader(context), program(*program), routine(*routine), names_(*names) {}

  ImportGraph reader;  // shapes and constants by name, as the importer has them
  CProgram& program;
  CRoutine& routine;                                        // the function that is being written
  std::map<std::string, int> values;                        // the program's, by name
  std::map<std::string, int> readers;                       // how many operators read each name
  std::set<std::string> results;                            // names of the graph's outputs
  std::map<std::string, const onnx::NodeProto*> reader_of;  // the last one
  std::set<const onnx::NodeProto*> absorbed;  // operators that another one already does
  std::map<std::string, CType> types;         // each value's
  // Of what losses judge, with the names of these values: losses compute them in the forward pass.
  std::vector<std::pair<std::string, CArgument>> loss_gradients;

  // An identifier that is no word of C and not taken.
  std::string identifier(const std::string& wish);
  int add_value(const std::string& blob, const Shape& shape, CType type);
  int add_constant(const std::string& name, CConstant constant);
  // A parameter that training changes: the value that both functions have of it.
  int trained(const std::string& key) const { return names_.trained.at(key); }

 private:
  CNames& names_;
  std::set<std::string> identifiers_;  // of this function
};

class OperatorEmit {
 public:
  // `what` is said of the operator in the comment of its first call.
  OperatorEmit(EmitGraph& graph, const onnx::NodeProto& node, int opset, const char* what = "")
      : op(graph.reader, node, opset, graph.readers), graph_(graph), node_(node), what_(what) {}

  // Shapes, constants and attributes.
  const OperatorImport op;

  const Shape& shape(int i = 0) const { return op.shape(i); }
  CType type(int i = 0) const;
  bool wanted(int output) const { return op.outputs() > output && op.wanted(output); }
  // The program trains; this input is a parameter that it changes.
  bool trains() const { return graph_.program.training.has_value(); }
  bool is_trained(int input) const;
  uint64_t seed() const { return graph_.program.training->seed; }

  // Arguments. A constant input has its own layout. NULL for an input that is absent.
  CArgument input(int i);
  CArgument output(int i, const Shape& shape, CType type = CType::real);
  CArgument intermediate(const std::string& what, const Shape& shape, CType type = CType::real);
  // Memory that only this call needs, in elements.
  CArgument scratch(int64_t count) { return intermediate("scratch", {count}); }
  static CArgument text(const std::string& text);
  static CArgument number(int64_t value) { return text(std::to_string(value)); }
  static CArgument number(float value);
  // Constants in a layout that the function wants; `of` is the input they come from.
  CArgument packed(int of, const std::string& layout, std::vector<float> values);
  CArgument packed(int of, const std::string& layout, CType type, std::vector<int32_t> values);

  // Adds a call of a function that a file of exchange/c/functions has.
  CCall& call(const std::string& function, std::vector<CArgument> arguments);
  CCall& call(const std::string& function, std::vector<CArgument> arguments,
              const std::string& structure, const CFields& fields);
  // Adds a call of a function that a macro of a file makes, such as UNARY(tanh, tanhf(x)).
  CCall& call_instance(const std::string& file, const std::string& function,
                       const std::string& macro, std::vector<CArgument> arguments);
  CCall& call_instance(const std::string& file, const std::string& function,
                       const std::string& macro, std::vector<CArgument> arguments,
                       const std::string& structure, const CFields& fields);
  // The output may have the memory of an input, if nothing reads that one later.
  void may_overwrite(CCall& call, int input);
  // The output is the input with another shape, or a piece of it that begins `shift` elements behind.
  void view(int input, const Shape& shape, int64_t shift = 0, int output = 0);
  void count_products(int64_t count) { graph_.routine.products += count; }
  // For a loss: `gradient` is that of this input.
  void give_loss_gradient(int input, const CArgument& gradient);

  // The activation that alone reads output 0: the function applies it, and output(0) is the activation's.
  struct Activation {
    std::string text() const;  // the field `.activation` of a structure

    const char* kind = "NO_ACTIVATION";
    float low = 0, high = 0;  // the bounds, or the slope
  };
  Activation activation();
  // The same for a QuantizeLinear that alone reads the result, with its activation; after activation().
  struct Rounding {
    CType type = CType::real;  // the result's: floats if there is no QuantizeLinear
    float step = 0;
  };
  Rounding rounding();

 protected:
  EmitGraph& graph_;
  const onnx::NodeProto& node_;

 private:
  std::string output_name(int i) const;
  // nullptr: several operators read it, or it is a result.
  const onnx::NodeProto* only_reader(const std::string& name) const;
  CCall& add_call(const std::string& function, std::vector<CArgument> arguments);

  const char* const what_;
  const onnx::NodeProto *activation_ = nullptr, *rounding_ = nullptr;
  bool commented_ = false;
};

// The text of a float: what C reads as exactly this value.
std::string c_float(float value);

// The definition of an array; `name`: with its type.
std::string c_array(const std::string& name, const std::vector<float>& values);

struct OperatorEmitter {
  void (*emit)(OperatorEmit& op) = nullptr;
};
struct OperatorEmitTag {};
using OperatorEmitRegistry = Registry<OperatorEmitTag, OperatorEmitter>;

// EMIT_OPERATOR(Conv, emit_conv);
#define EMIT_OPERATOR(Type, function)               \
  [[maybe_unused]] static const bool emits_##Type = \
      crema::OperatorEmitRegistry::add(#Type, {function})

}  // namespace crema
