#include "exchange/onnx/onnx_graph.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace crema {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

namespace {

struct SetAttribute {
  AttributeProto* to;

  void operator()(int64_t value) const {
    to->set_type(AttributeProto::INT);
    to->set_i(value);
  }
  void operator()(float value) const {
    to->set_type(AttributeProto::FLOAT);
    to->set_f(value);
  }
  void operator()(const std::string& value) const {
    to->set_type(AttributeProto::STRING);
    to->set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    to->set_type(AttributeProto::INTS);
    to->mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    to->set_type(AttributeProto::FLOATS);
    to->mutable_floats()->Add(values.begin(), values.end());
  }
};

int64_t attribute_of(const NodeProto& node, const std::string& name, int64_t otherwise) {
  for (const AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.i();
  return otherwise;
}

}  // namespace

std::string OnnxGraph::unique(const std::string& wish) {
  std::string name = wish;
  for (int number = 2; !names_.insert(name).second; ++number) name = cat(wish, "_", number);
  return name;
}

void OnnxGraph::at(const std::string& layer, const std::string& where) {
  layer_ = layer;
  where_ = where;
}

void OnnxGraph::end_layer() {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->node.name() != layer_) continue;
    step->node.mutable_name()->swap(*steps_.back().node.mutable_name());
    return;
  }
}

NodeProto* OnnxGraph::add(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs,
                          const OnnxAttributes& attributes) {
  NodeProto& node = steps_.emplace_back().node;
  const int number = ++nodes_of_layer_[layer_];
  node.set_name(number == 1 ? layer_ : cat(layer_, "/", number));
  node.set_op_type(op);
  node.set_doc_string(where_);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  for (const OnnxAttribute& given : attributes) {
    AttributeProto* attribute = node.add_attribute();
    attribute->set_name(given.name);
    std::visit(SetAttribute{attribute}, given.value);
  }
  return &node;
}

void OnnxGraph::add_line(const std::string& input, const std::string& output, int axes,
                         ChannelLine line) {
  add("", {input}, {output});
  steps_.back().line = std::move(line);
  steps_.back().axes = axes;
}

template <typename Integer>
std::string raw_data_as(const std::vector<int64_t>& values) {
  const std::vector<Integer> narrow(values.begin(), values.end());
  return {reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(Integer)};
}

std::string OnnxGraph::floats(const std::string& wish, const std::vector<int64_t>& shape,
                              std::vector<float> values) {
  const std::string name = unique(wish);
  constants_[name] = {shape, std::move(values), {}, TensorProto::FLOAT};
  return name;
}

std::string OnnxGraph::shared_floats(const std::string& wish, const std::vector<int64_t>& shape,
                                     const std::function<std::vector<float>()>& values) {
  std::string& name = shared_[{wish, shape}];
  if (name.empty()) name = floats(wish, shape, values());
  return name;
}

std::string OnnxGraph::ints(const std::string& wish, const std::vector<int64_t>& values,
                            bool scalar) {
  const std::string name = unique(wish);
  std::vector<int64_t> shape;
  if (!scalar) shape.push_back(static_cast<int64_t>(values.size()));
  constants_[name] = {shape, {}, values, TensorProto::INT64};
  return name;
}

std::string OnnxGraph::integers(const std::string& wish, const std::vector<int64_t>& shape,
                                std::vector<int64_t> values, TensorProto::DataType type) {
  const std::string name = unique(wish);
  constants_[name] = {shape, {}, std::move(values), type};
  return name;
}

// Output channels are the first axis of the weights of Conv and Gemm (transB), the second one of
// ConvTranspose, whose first axis has the input channels of all groups.
bool OnnxGraph::fold_into(Step* before, const Step& line,
                          const std::map<std::string, int>& readers) {
  const auto channels = static_cast<int64_t>(line.line.factor.size());
  if (before->is_line()) {
    for (int64_t c = 0; c < channels; ++c) {
      before->line.shift[c] = before->line.shift[c] * line.line.factor[c] + line.line.shift[c];
      before->line.factor[c] *= line.line.factor[c];
    }
    return true;
  }
  NodeProto& node = before->node;
  const std::string& op = node.op_type();
  if (op != "Conv" && op != "Gemm" && op != "ConvTranspose") return false;
  const auto weights = constants_.find(node.input(1));
  if (weights == constants_.end()) return false;
  for (const std::string& input : node.input())
    if (trained_.count(input) > 0) return false;
  Constant scaled = weights->second;
  const int64_t first = scaled.shape[0];
  const int64_t inner = static_cast<int64_t>(scaled.floats.size()) / first;
  if (op == "ConvTranspose") {
    const int64_t per_group = scaled.shape[1], in_group = first / attribute_of(node, "group", 1);
    const int64_t points = inner / per_group;
    for (int64_t i = 0; i < first; ++i)
      for (int64_t o = 0; o < per_group; ++o)
        for (int64_t k = 0; k < points; ++k)
          scaled.floats[(i * per_group + o) * points + k] *=
              line.line.factor[i / in_group * per_group + o];
  } else {
    for (int64_t o = 0; o < first; ++o)
      for (int64_t k = 0; k < inner; ++k) scaled.floats[o * inner + k] *= line.line.factor[o];
  }
  std::vector<float> bias(channels);
  const bool had_bias = node.input_size() > 2;
  const std::vector<float> old =
      had_bias ? constants_.at(node.input(2)).floats : std::vector<float>(channels);
  for (int64_t c = 0; c < channels; ++c)
    bias[c] = static_cast<float>(old[c] * line.line.factor[c] + line.line.shift[c]);
  const std::string wish = node.name();
  if (readers.at(node.input(1)) > 1) {  // another layer shares them
    const std::string name = unique(wish + ".folded_weights");
    constants_[name] = std::move(scaled);
    node.set_input(1, name);
  } else {
    weights->second = std::move(scaled);
  }
  const std::string name = floats(wish + ".folded_bias", {channels}, std::move(bias));
  had_bias ? node.set_input(2, name) : node.add_input(name);
  return true;
}

void OnnxGraph::fold_lines(const std::set<std::string>& kept) {
  std::map<std::string, size_t> producers;
  std::map<std::string, int> readers;
  for (const Step& step : steps_)
    for (const std::string& name : step.node.input()) ++readers[name];
  std::vector<Step> folded;
  for (Step& step : steps_) {
    if (step.is_line()) {
      const std::string& from = step.node.input(0);
      const auto producer = producers.find(from);
      if (producer != producers.end() && readers[from] == 1 && !kept.count(from) &&
          fold_into(&folded[producer->second], step, readers)) {
        folded[producer->second].node.set_output(0, step.node.output(0));
        producers[step.node.output(0)] = producer->second;
        continue;
      }
    }
    for (const std::string& name : step.node.output()) producers[name] = folded.size();
    folded.push_back(std::move(step));
  }
  steps_ = std::move(folded);
}

void OnnxGraph::drop_identities(const std::set<std::string>& kept) {
  std::set<std::string> produced;
  for (const Step& step : steps_)
    produced.insert(step.node.output().begin(), step.node.output().end());
  std::map<std::string, std::string> renamed;  // to the name that stays
  std::vector<Step> left;
  const auto name_of = [&](std::string name) {
    for (auto at = renamed.find(name); at != renamed.end(); at = renamed.find(name))
      name = at->second;
    return name;
  };
  for (Step& step : steps_) {
    if (step.is_line() || step.node.op_type() != "Identity") {
      left.push_back(std::move(step));
      continue;
    }
    const std::string from = name_of(step.node.input(0)), to = step.node.output(0);
    if (produced.count(from) && !kept.count(from)) {
      renamed[from] = to;
    } else if (!kept.count(to) && !constants_.count(from)) {
      renamed[to] = from;
    } else {
      left.push_back(std::move(step));
    }
  }
  for (Step& step : left) {
    for (std::string& name : *step.node.mutable_input()) name = name_of(name);
    for (std::string& name : *step.node.mutable_output()) name = name_of(name);
  }
  steps_ = std::move(left);
}

void OnnxGraph::write_constant(const std::string& name, const Constant& constant,
                               GraphProto* graph) {
  TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->mutable_dims()->Add(constant.shape.begin(), constant.shape.end());
  tensor->set_data_type(constant.type);
  switch (constant.type) {
    case TensorProto::FLOAT:
      return tensor->set_raw_data(constant.floats.data(), constant.floats.size() * sizeof(float));
    case TensorProto::INT64:
      return tensor->set_raw_data(constant.ints.data(), constant.ints.size() * sizeof(int64_t));
    case TensorProto::INT32:
      return tensor->set_raw_data(raw_data_as<int32_t>(constant.ints));
    default:  // INT8 and UINT8 have the same bytes
      return tensor->set_raw_data(raw_data_as<uint8_t>(constant.ints));
  }
}

void OnnxGraph::write_line(const Step& step, GraphProto* graph) {
  const auto channels = static_cast<int64_t>(step.line.factor.size());
  std::vector<int64_t> shape(std::max(step.axes - 1, 1), 1);
  shape[0] = channels;
  const auto has_other_than = [](const std::vector<double>& values, double value) {
    return std::any_of(values.begin(), values.end(), [&](double one) { return one != value; });
  };
  const bool shifts = has_other_than(step.line.shift, 0);
  const bool scales = has_other_than(step.line.factor, 1) || !shifts;
  const std::string& name = step.node.name();
  std::string from = step.node.input(0);
  const auto apply = [&](const char* op, const std::string& to, const std::vector<double>& values) {
    const std::string constant =
        floats(cat(name, ".", op), shape, std::vector<float>(values.begin(), values.end()));
    write_constant(constant, constants_.at(constant), graph);
    NodeProto* node = graph->add_node();
    node->set_name(cat(name, ".", op));
    node->set_op_type(op);
    node->set_doc_string(step.node.doc_string());
    node->add_input(from);
    node->add_input(constant);
    node->add_output(to);
    from = to;
  };
  const std::string& to = step.node.output(0);
  if (scales) apply("Mul", shifts ? unique(name + ".scaled") : to, step.line.factor);
  if (shifts) apply("Add", to, step.line.shift);
}

void OnnxGraph::write(GraphProto* graph) {
  std::set<std::string> written;
  for (const Step& step : steps_) {
    if (step.is_line()) {
      write_line(step, graph);
      continue;
    }
    for (const std::string& name : step.node.input()) {
      const auto constant = constants_.find(name);
      if (constant != constants_.end() && written.insert(name).second)
        write_constant(name, constant->second, graph);
    }
    *graph->add_node() = step.node;
  }
}

}  // namespace crema
