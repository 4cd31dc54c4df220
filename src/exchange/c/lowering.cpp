#include "exchange/c/lowering.h"

#include "base/visible.h"

namespace crema {

namespace {

// Code for more steps of a loop would be larger than most nets.
constexpr int64_t kMostSteps = 256;

// Operators whose results have a size that depends on values, such as the number of objects found.
const std::set<std::string> kOfAnySize = {"NonMaxSuppression", "NonZero", "Unique", "Compress"};

// Operators of a layer are called "layer", "layer/2" and so on.
std::string layer_of(const onnx::NodeProto& node) {
  const std::string& name = node.name();
  const size_t last = name.find_last_not_of("0123456789");
  const bool numbered =
      last != std::string::npos && last > 0 && last + 1 < name.size() && name[last] == '/';
  return visible(numbered ? name.substr(0, last) : name);
}

}  // namespace

CLowering::CLowering(Context& context, const onnx::ModelProto& model,
                     const std::map<std::string, std::string>& trained, CProgram* program,
                     CRoutine* routine, CNames* names)
    : model_(model), trained_(trained), graph_(context, program, routine, names) {}

void CLowering::run(bool returns) {
  const onnx::GraphProto& graph = model_.graph();
  for (const onnx::ValueInfoProto& output : graph.output()) {
    graph_.results.insert(output.name());
    ++graph_.readers[output.name()];
  }
  find_needed();
  for (const onnx::TensorProto& tensor : graph.initializer()) add_constant(tensor);
  for (const onnx::ValueInfoProto& input : graph.input()) add_input(input);
  for (const onnx::NodeProto& node : graph.node())
    if (needed_.count(&node) > 0) add(node);
  if (!returns) return;
  for (const onnx::ValueInfoProto& output : graph.output()) add_output(output.name());
}

// Operators that lead to a result.
void CLowering::find_needed() {
  std::set<std::string> wanted = graph_.results;
  const auto& nodes = model_.graph().node();
  for (int i = nodes.size() - 1; i >= 0; --i) {
    bool needed = false;
    for (const std::string& output : nodes[i].output()) needed |= wanted.count(output) > 0;
    if (!needed) continue;
    needed_.insert(&nodes[i]);
    wanted.insert(nodes[i].input().begin(), nodes[i].input().end());
    for (const onnx::AttributeProto& attribute : nodes[i].attribute())
      for (const onnx::NodeProto& inner : attribute.g().node())
        wanted.insert(inner.input().begin(), inner.input().end());
    add_reader(nodes[i]);
  }
}

void CLowering::add_reader(const onnx::NodeProto& node) {
  for (const std::string& input : node.input()) {
    ++graph_.readers[input];
    graph_.reader_of[input] = &node;
  }
}

void CLowering::add_constant(const onnx::TensorProto& tensor) {
  ImportValue& value = graph_.reader.values[tensor.name()];
  if (const auto found = trained_.find(tensor.name()); found != trained_.end()) {
    value.blob = tensor.name();
    value.shape = Shape(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
    graph_.values[tensor.name()] = graph_.trained(found->second);
    return;
  }
  value.constant = std::make_shared<OnnxTensor>(read_onnx_tensor(tensor, "", tensor.name()));
  value.shape = value.constant->shape;
  value.is_integer = value.constant->is_int;
  if (tensor.data_type() == onnx::TensorProto::INT8) graph_.types[tensor.name()] = CType::int8;
  if (tensor.data_type() == onnx::TensorProto::UINT8) graph_.types[tensor.name()] = CType::uint8;
}

void CLowering::add_input(const onnx::ValueInfoProto& input) {
  Shape shape;
  for (const auto& dim : input.type().tensor_type().shape().dim()) shape.push_back(dim.dim_value());
  const int id = graph_.add_value(input.name(), shape, CType::real);
  graph_.program.values[id].memory = CValue::Memory::input;
  graph_.routine.inputs.push_back(id);
  graph_.values[input.name()] = id;
  ImportValue& value = graph_.reader.values[input.name()];
  value.blob = input.name();
  value.shape = shape;
}

void CLowering::add(const onnx::NodeProto& node) {
  if (node.op_type() == "Scan") return add_scan(node);
  if (graph_.absorbed.count(&node) > 0) return operators_.push_back(&node);
  at_operator(node, [&] {
    const OperatorImport folded(graph_.reader, node, opset(), graph_.readers);
    if (folded.all_constant() && fold(node)) return;
    if (node.op_type() == "Shape") {  // all shapes are known
      ImportValue& value = graph_.reader.values[node.output(0)];
      value.constant = std::make_shared<OnnxTensor>(OnnxTensor::of_ints(folded.shape(0).dims()));
      value.shape = value.constant->shape;
      value.is_integer = true;
      return;
    }
    require(kOfAnySize.count(node.op_type()) == 0, "the size of its results depends on values (",
            node.op_type(),
            "), but memory in C is laid out beforehand; end the net before this "
            "layer, with -cut LAYER or -cut before_nms");
    const OperatorEmitter* const emitter = OperatorEmitRegistry::find(node.op_type());
    require(emitter != nullptr, "there is no C function for the operator ", node.op_type(),
            "; end the net before this layer with -cut, or write the net with -to onnx");
    OperatorEmit op(graph_, node, opset());
    emitter->emit(op);
    operators_.push_back(&node);
  });
}

void CLowering::at_operator(const onnx::NodeProto& node, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    fail(node.doc_string(), node.doc_string().empty() ? "" : ": ", "layer \"", layer_of(node),
         "\": ", error.what());
  }
}

// Its sequences run along their first axis.
void CLowering::add_scan(const onnx::NodeProto& node) {
  const Shape& sequence = graph_.reader.values.at(node.input(node.input_size() - 1)).shape;
  require(sequence[0] <= kMostSteps, node.doc_string(), ": layer \"", layer_of(node), "\": it has ",
          sequence[0], " steps, and each becomes C code, up to ", kMostSteps,
          "; use shorter sequences, or write the net with -to onnx");
  unrolled_.push_back(unroll_scan(node, sequence[0]));
  for (const onnx::TensorProto& tensor : unrolled_.back().constants) add_constant(tensor);
  for (const onnx::NodeProto& one : unrolled_.back().nodes) add_reader(one);
  for (const onnx::NodeProto& one : unrolled_.back().nodes) add(one);
}

// False: the importer computes no constants of this type.
bool CLowering::fold(const onnx::NodeProto& node) {
  const OperatorFunction* const function = OperatorFoldRegistry::find(node.op_type());
  if (function == nullptr) return false;
  OperatorImport op(graph_.reader, node, opset(), graph_.readers);
  function->run(op);
  return true;
}

// A result that is a constant is copied to the caller's memory.
void CLowering::add_output(const std::string& name) {
  if (graph_.values.count(name) == 0) {
    onnx::NodeProto copy;
    copy.set_op_type("Identity");
    copy.add_input(name);
    copy.add_output(name);
    OperatorEmit(graph_, copy, opset()).view(0, graph_.reader.values.at(name).shape);
  }
  graph_.routine.outputs.push_back(graph_.values.at(name));
}

}  // namespace crema
