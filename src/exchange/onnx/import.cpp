#include "exchange/onnx/import.h"

#include <algorithm>

#include "base/visible.h"
#include "exchange/onnx/import_patterns.h"
#include "exchange/onnx/operator_import.h"
#include "net/net_text.h"
#include "proto/params/input.pb.h"

namespace crema {

namespace {

class Importer {
 public:
  Importer(Context& context, const OnnxFile& file, const ImportOptions& options)
      : file_(file), options_(options), graph_(context) {}

  ImportedNet run() {
    for (const auto& [name, shape] : options_.shapes) {
      bool found = false;
      for (const onnx::ValueInfoProto& input : file_.graph.input())
        found = found || input.name() == name;
      require(found, visible(file_.path), ": no input is called \"", visible(name), "\"");
    }
    reserve();
    for (const auto& [name, constant] : file_.constants) {
      ImportValue value;
      value.shape = constant->shape;
      value.is_integer = constant->is_int;
      value.constant = constant;
      graph_.values[name] = std::move(value);
    }
    for (const onnx::ValueInfoProto& input : file_.graph.input())
      if (file_.constants.count(input.name()) == 0) add_input(input);
    int index = 0;
    for (const onnx::NodeProto& node : file_.graph.node()) import_node(node, index++);
    for (const onnx::ValueInfoProto& output : file_.graph.output()) add_output(output.name());
    apply_patterns();
    remove_unread();
    for (const ImportedLayer& layer : graph_.layers) {
      require(layer.unsupported.empty(), visible(file_.path), ": ", visible(layer.message.name()),
              ": ", layer.unsupported);
    }
    return written();
  }

 private:
  void reserve() {
    const auto add = [&](const std::string& name) { graph_.reserve_blob(name); };
    for (const onnx::ValueInfoProto& input : file_.graph.input()) add(input.name());
    for (const onnx::NodeProto& node : file_.graph.node()) {
      for (const std::string& output : node.output()) add(output);
      for (const std::string& input : node.input()) ++readers_[input];
    }
    for (const onnx::ValueInfoProto& output : file_.graph.output()) ++readers_[output.name()];
  }

  Shape shape_of_input(const onnx::ValueInfoProto& input) const {
    const std::string what = cat(visible(file_.path), ": input \"", visible(input.name()), "\"");
    const auto given = options_.shapes.find(input.name());
    if (given != options_.shapes.end()) return given->second;
    const onnx::TypeProto::Tensor& type = input.type().tensor_type();
    require(input.type().has_tensor_type() && type.has_shape(), what, " has no shape; -assume ",
            visible(input.name()), "=1x3x224x224 gives it, for example");
    Shape shape;
    for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      int64_t extent = dim.dim_value();
      if (!dim.has_dim_value() || (extent == -1 && shape.axes() == 0)) {
        require(shape.axes() == 0, what, ": the extent of axis ", shape.axes(),
                dim.has_dim_param() ? cat(" is \"", visible(dim.dim_param()), "\"") : " is open",
                "; -assume gives a shape, such as -assume ", visible(input.name()), "=1x3x224x224");
        extent = options_.batch;
      }
      require(extent > 0, what, ": extent ", extent, " of axis ", shape.axes(), " is not positive");
      shape.push_back(extent);
    }
    onnx_elements(shape.dims(), what);
    return shape;
  }

  void add_input(const onnx::ValueInfoProto& input) {
    const Shape shape = shape_of_input(input);
    graph_.add("Input", graph_.unique_layer(input.name()), {}, {input.name()},
               [&](LayerParameter* layer) {
                 BlobShape* const to = layer->mutable_input_param()->add_shape();
                 for (const int64_t extent : shape.dims()) to->add_dim(extent);
               },
               {});
    ImportValue value;
    value.blob = input.name();
    value.shape = shape;
    const int type = input.type().tensor_type().elem_type();
    value.is_integer = type != onnx::TensorProto::FLOAT && type != onnx::TensorProto::DOUBLE &&
                       type != onnx::TensorProto::FLOAT16 && type != onnx::TensorProto::BFLOAT16;
    graph_.values[input.name()] = std::move(value);
    inputs_.push_back(input.name());
  }

  std::string inputs_text(const onnx::NodeProto& node) const {
    std::string text;
    for (const std::string& input : node.input()) {
      text += text.empty() ? "" : ", ";
      if (input.empty()) {
        text += "none";
        continue;
      }
      const ImportValue& value = graph_.values.at(input);
      text += value.constant ? "constant " : "";
      text += value.shape.axes() == 0 ? "scalar" : value.shape.brief();
    }
    return text;
  }

  void import_node(const onnx::NodeProto& node, int index) {
    OperatorImport op(graph_, node, file_.opset, readers_);
    const OperatorFunction* function = nullptr;
    if (op.all_constant()) function = OperatorFoldRegistry::find(node.op_type());
    if (!function) function = OperatorImportRegistry::find(node.op_type());
    const std::string where = cat(visible(file_.path), ": ", node_text(node, index));
    graph_.node = visible(node.op_type());
    if (!node.name().empty()) graph_.node += cat(" \"", visible(node.name()), "\"");
    const std::string inputs = inputs_text(node);
    const std::string of = inputs.empty() ? "" : cat(" of ", inputs);
    require(function != nullptr, where, of, ": no layer computes this operator");
    try {
      function->run(op);
      for (const std::string& output : node.output())
        require(output.empty() || readers_.count(output) == 0 || graph_.values.count(output) > 0,
                "output \"", visible(output), "\" is read, but no layer computes it");
    } catch (const Error& error) {
      throw Error(cat(where, of, ": ", error.what()));
    }
  }

  // Results of a net are blobs that no layer reads, and whose layer has no other top: others, and
  // inputs, get a copy.
  void add_output(const std::string& name) {
    graph_.node.clear();
    onnx::NodeProto node;
    node.set_op_type("Split");
    node.set_name(name);
    node.add_input(name);
    OperatorImport op(graph_, node, file_.opset, readers_);
    std::string blob = op.blob(0);
    bool read = std::find(inputs_.begin(), inputs_.end(), blob) != inputs_.end();
    for (const ImportedLayer& layer : graph_.layers)
      for (const std::string& bottom : layer.message.bottom()) read = read || bottom == blob;
    for (const auto& [output, other] : outputs_) read = read || other == blob;
    const ImportedLayer* const maker = graph_.maker_of(blob);
    read = read || (maker != nullptr && maker->message.top_size() > 1);
    if (read) {
      const std::string top = graph_.unique_blob(name + "/output");
      graph_.add("Split", graph_.unique_layer(top), {blob}, {top}, {}, {});
      blob = top;
    }
    outputs_[name] = blob;
  }

  void apply_patterns() {
    std::set<std::string> kept;
    for (const auto& [name, blob] : outputs_) kept.insert(blob);
    apply_import_patterns(graph_, kept);
  }

  // Layers whose tops nothing reads, such as those of constants that became part of others.
  void remove_unread() {
    std::set<std::string> read;
    for (const auto& [name, blob] : outputs_) read.insert(blob);
    std::vector<ImportedLayer> kept;
    for (auto layer = graph_.layers.rbegin(); layer != graph_.layers.rend(); ++layer) {
      LayerParameter& message = layer->message;
      if (message.type() == "Silence") {
        kept.push_back(std::move(*layer));
        continue;
      }
      bool needed = message.type() == "Input";
      for (const std::string& top : message.top()) needed = needed || read.count(top) > 0;
      if (!needed) continue;
      read.insert(message.bottom().begin(), message.bottom().end());
      kept.push_back(std::move(*layer));
    }
    std::reverse(kept.begin(), kept.end());
    trim_silence(&kept, read);
    graph_.layers = std::move(kept);
  }

  // A Silence reads tops that nothing else reads, of layers that are there.
  static void trim_silence(std::vector<ImportedLayer>* layers, const std::set<std::string>& read) {
    std::set<std::string> made;
    for (const ImportedLayer& layer : *layers)
      made.insert(layer.message.top().begin(), layer.message.top().end());
    for (auto layer = layers->begin(); layer != layers->end();) {
      if (layer->message.type() != "Silence") {
        ++layer;
        continue;
      }
      std::vector<std::string> rest;
      for (const std::string& bottom : layer->message.bottom())
        if (made.count(bottom) > 0 && read.count(bottom) == 0) rest.push_back(bottom);
      layer->message.clear_bottom();
      for (const std::string& bottom : rest) layer->message.add_bottom(bottom);
      layer = rest.empty() ? layers->erase(layer) : layer + 1;
    }
  }

  ImportedNet written() {
    ImportedNet imported;
    imported.inputs = inputs_;
    imported.notes.assign(graph_.notes.begin(), graph_.notes.end());
    imported.outputs = outputs_;
    if (!file_.graph.name().empty()) imported.net.set_name(file_.graph.name());
    for (ImportedLayer& layer : graph_.layers) {
      imported.nodes[layer.message.name()] = layer.node;
      if (!layer.blobs.empty()) imported.weights[layer.message.name()] = std::move(layer.blobs);
      imported.net.add_layer()->Swap(&layer.message);
    }
    return imported;
  }

  const OnnxFile& file_;
  const ImportOptions& options_;
  ImportGraph graph_;
  std::map<std::string, int> readers_;  // of each value, nodes and outputs
  std::vector<std::string> inputs_;
  std::map<std::string, std::string> outputs_;
};

}  // namespace

ImportedNet import_onnx(Context& context, const OnnxFile& file, const ImportOptions& options) {
  return Importer(context, file, options).run();
}

std::string with_node_names(const std::string& text, const ImportedNet& imported) {
  std::map<std::string, const std::string*> by_line;  // the line with the layer's name
  for (const auto& [name, node] : imported.nodes) {
    LayerParameter layer;
    layer.set_name(name);
    by_line["  " + net_text(layer)] = &node;
  }
  const std::string begin = "layer {\n";
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    if (end == 0) return result + text.substr(at);
    if (text.compare(at, end - at, begin) == 0) {
      const size_t next = text.find('\n', end) + 1;
      const auto found = by_line.find(text.substr(end, next - end));
      if (found != by_line.end() && !found->second->empty())
        result += cat("# ", *found->second, "\n");
    }
    result.append(text, at, end - at);
    at = end;
  }
  return result;
}

void set_imported_weights(const ImportedNet& imported, Net* net) {
  for (Parameter& parameter : net->parameters()) {
    const auto found = imported.weights.find(parameter.layer);
    require(
        found != imported.weights.end() && parameter.index < static_cast<int>(found->second.size()),
        "layer \"", visible(parameter.layer), "\" has no weights");
    const LayerBlob& blob = found->second[parameter.index];
    require(blob.shape.count() == parameter.shape.count(), "layer \"", visible(parameter.layer),
            "\": weights of ", blob.shape.brief(), " for ", parameter.shape.brief());
    from_floats(net->context(), blob.values.data(), parameter.data);
  }
  net->parameters_changed();
}

}  // namespace crema
