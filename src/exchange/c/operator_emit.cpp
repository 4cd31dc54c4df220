#include "exchange/c/operator_emit.h"

#include <limits>

#include "base/strings.h"

namespace crema {

CFields& CFields::add(const std::string& name, int64_t value) {
  return text(name, std::to_string(value));
}

CFields& CFields::add(const std::string& name, const std::vector<int64_t>& values) {
  std::string list;
  for (const int64_t value : values) list += cat(list.empty() ? "" : ", ", value);
  return text(name, cat("{", list, "}"));
}

CFields& CFields::text(const std::string& name, const std::string& text) {
  text_ += cat(text_.empty() ? "" : ",\n", ".", name, " = ", text);
  return *this;
}

std::string CFields::inner() const { return cat("{", join(split(text_, '\n'), " "), "}"); }

CType OperatorEmit::type(int i) const {
  const auto found = graph_.types.find(node_.input(i));
  if (found != graph_.types.end()) return found->second;
  return op.is_constant(i) && op.value(i).constant->is_int ? CType::whole : CType::real;
}

bool OperatorEmit::is_trained(int input) const {
  if (!op.has(input)) return false;
  const auto value = graph_.values.find(node_.input(input));
  return value != graph_.values.end() &&
         graph_.program.values[value->second].memory == CValue::Memory::trained;
}

void OperatorEmit::give_loss_gradient(int input, const CArgument& gradient) {
  graph_.loss_gradients.emplace_back(node_.input(input), gradient);
}

CArgument OperatorEmit::input(int i) {
  if (!op.has(i)) return text("NULL");
  const std::string& name = node_.input(i);
  const auto value = graph_.values.find(name);
  if (value != graph_.values.end()) return {CArgument::Kind::value, value->second, "", false};
  const OnnxTensor& tensor = op.constant(i, "an input");
  CConstant constant;
  if (tensor.is_int) {
    constant.type = type(i);
    for (const int64_t number : tensor.ints)
      constant.ints.push_back(static_cast<int32_t>(std::clamp<int64_t>(
          number, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())));
  } else {
    constant.floats = tensor.floats;
  }
  return {CArgument::Kind::constant, graph_.add_constant(name, std::move(constant)), "", false};
}

std::string OperatorEmit::output_name(int i) const {
  const onnx::NodeProto* const last = rounding_ != nullptr ? rounding_ : activation_;
  return i == 0 && last != nullptr ? last->output(0) : node_.output(i);
}

CArgument OperatorEmit::output(int i, const Shape& shape, CType type) {
  const std::string name = output_name(i);
  const int id = graph_.add_value(name, shape, type);
  graph_.values[name] = id;
  graph_.types[name] = type;
  ImportValue& value = graph_.reader.values[name];
  value.blob = name;
  value.shape = shape;
  value.is_integer = type != CType::real;
  // Gradients ask for the shape of a result that only its activation has.
  graph_.reader.values[node_.output(i)].shape = shape;
  return {CArgument::Kind::value, id, "", true};
}

CArgument OperatorEmit::intermediate(const std::string& what, const Shape& shape, CType type) {
  const int id = graph_.add_value(cat(output_name(0), "_", what), shape, type);
  return {CArgument::Kind::value, id, "", false};
}

CArgument OperatorEmit::text(const std::string& text) {
  return {CArgument::Kind::text, 0, text, false};
}

CArgument OperatorEmit::number(float value) { return text(c_float(value)); }

CArgument OperatorEmit::packed(int of, const std::string& layout, std::vector<float> values) {
  CConstant constant;
  constant.floats = std::move(values);
  return {CArgument::Kind::constant,
          graph_.add_constant(cat(node_.input(of), layout), std::move(constant)), "", false};
}

CArgument OperatorEmit::packed(int of, const std::string& layout, CType type,
                               std::vector<int32_t> values) {
  CConstant constant;
  constant.type = type;
  constant.ints = std::move(values);
  return {CArgument::Kind::constant,
          graph_.add_constant(cat(node_.input(of), layout), std::move(constant)), "", false};
}

CCall& OperatorEmit::add_call(const std::string& function, std::vector<CArgument> arguments) {
  CCall call;
  call.function = function;
  call.arguments = std::move(arguments);
  if (!commented_) {
    std::string shapes;
    for (int i = 0; i < op.inputs(); ++i)
      if (op.has(i) && !op.is_constant(i))
        shapes += cat(shapes.empty() ? "" : ", ", shape(i).brief());
    call.comment = cat(node_.name(), ": ", what_, node_.op_type());
    for (const onnx::NodeProto* const absorbed : {activation_, rounding_})
      if (absorbed != nullptr) call.comment += cat(" and ", absorbed->op_type());
    if (!shapes.empty()) call.comment += cat(" of ", shapes);
    if (!node_.doc_string().empty()) call.comment += cat(" (", node_.doc_string(), ")");
  }
  commented_ = true;
  graph_.routine.calls.push_back(std::move(call));
  return graph_.routine.calls.back();
}

CCall& OperatorEmit::call(const std::string& function, std::vector<CArgument> arguments) {
  CCall& added = add_call(function, std::move(arguments));
  added.file = function;
  return added;
}

CCall& OperatorEmit::call(const std::string& function, std::vector<CArgument> arguments,
                          const std::string& structure, const CFields& fields) {
  CCall& added = call(function, std::move(arguments));
  added.structure = structure;
  added.fields = fields.str();
  return added;
}

CCall& OperatorEmit::call_instance(const std::string& file, const std::string& function,
                                   const std::string& macro, std::vector<CArgument> arguments) {
  CCall& added = add_call(function, std::move(arguments));
  added.file = file;
  added.macro = macro;
  return added;
}

CCall& OperatorEmit::call_instance(const std::string& file, const std::string& function,
                                   const std::string& macro, std::vector<CArgument> arguments,
                                   const std::string& structure, const CFields& fields) {
  CCall& added = call_instance(file, function, macro, std::move(arguments));
  added.structure = structure;
  added.fields = fields.str();
  return added;
}

void OperatorEmit::may_overwrite(CCall& call, int input) {
  const auto value = graph_.values.find(node_.input(input));
  if (value != graph_.values.end()) call.over = value->second;
}

void OperatorEmit::view(int input, const Shape& shape, int64_t shift, int output_index) {
  const CArgument from = this->input(input);
  if (from.kind == CArgument::Kind::constant) {
    const CArgument to = output(output_index, shape, type(input));
    CConstant& constant = graph_.program.constants[from.index];
    call("memcpy", {to, text(cat(constant.name, " + ", shift)),
                    text(cat(shape.count(), " * sizeof(", c_name(constant.type), ")"))});
    return;
  }
  const CArgument to = output(output_index, shape, type(input));
  graph_.program.values[to.index].root = from.index;
  graph_.program.values[to.index].shift = shift;
}

const onnx::NodeProto* OperatorEmit::only_reader(const std::string& name) const {
  if (graph_.results.count(name) > 0 || graph_.readers.at(name) != 1) return nullptr;
  return graph_.reader_of.at(name);
}

std::string OperatorEmit::Activation::text() const {
  return cat("{", kind, ", ", c_float(low), ", ", c_float(high), "}");
}

OperatorEmit::Activation OperatorEmit::activation() {
  const std::string& name = node_.output(0);
  const onnx::NodeProto* const reader = only_reader(name);
  if (reader == nullptr) return {};
  const OperatorImport next(graph_.reader, *reader, op.opset(), graph_.readers);
  const std::string& kind = next.type();
  constexpr float kNone = std::numeric_limits<float>::infinity();
  Activation result;
  if (kind == "Relu") {
    result = {"CLIP", 0, kNone};
  } else if (kind == "LeakyRelu") {
    result = {"LEAKY", next.float_of("alpha", 0.01f), 0};
  } else if (kind == "Clip" && (!next.has(1) || next.is_constant(1)) &&
             (!next.has(2) || next.is_constant(2)) && reader->input(0) == name) {
    result = {"CLIP", next.has(1) ? static_cast<float>(next.number(1, "the lower bound")) : -kNone,
              next.has(2) ? static_cast<float>(next.number(2, "the upper bound")) : kNone};
  } else {
    return {};
  }
  graph_.absorbed.insert(reader);
  activation_ = reader;
  return result;
}

OperatorEmit::Rounding OperatorEmit::rounding() {
  const onnx::NodeProto* const reader = only_reader(output_name(0));
  if (reader == nullptr || reader->op_type() != "QuantizeLinear") return {};
  const OperatorImport next(graph_.reader, *reader, op.opset(), graph_.readers);
  graph_.absorbed.insert(reader);
  rounding_ = reader;
  return {graph_.types.at(reader->input(2)), next.number(1, "the step")};
}

}  // namespace crema
