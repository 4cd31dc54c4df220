#include "exchange/onnx/reader.h"

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

// Reads the fields of the outermost message without their contents, because protobuf says only
// that something is wrong.
class OuterFields {
 public:
  explicit OuterFields(const std::string& bytes) : bytes_(bytes) {}

  enum class Finding { whole, truncated, foreign };
  Finding read() {
    if (bytes_.empty()) return Finding::truncated;
    while (at_ < bytes_.size()) {
      uint64_t tag = 0, length = 0;
      if (!varint(&tag)) return ended();
      const uint64_t field = tag >> 3;
      const bool known =
          (field >= 1 && field <= 8) || field == 14 || field == 20 || field == 25 || field == 26;
      if (!known) return Finding::foreign;
      if ((tag & 7) == 0) {
        if (!varint(&length)) return ended();
      } else if ((tag & 7) == 2) {
        if (!varint(&length)) return ended();
        if (length > bytes_.size() - at_)
          return fields_ > 0 ? Finding::truncated : Finding::foreign;
        at_ += length;
      } else {
        return Finding::foreign;
      }
      ++fields_;
    }
    return Finding::whole;
  }

 private:
  bool varint(uint64_t* value) {
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  Finding ended() const { return at_ < bytes_.size() ? Finding::foreign : Finding::truncated; }

  const std::string& bytes_;
  size_t at_ = 0;
  int fields_ = 0;
};

int opset_of(const onnx::ModelProto& model, const std::string& path) {
  int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& set : model.opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") opset = set.version();
  require(opset > 0, visible(path), ": the model names no opset of ONNX's operators");
  require(opset >= kOldestOnnxOpset && opset <= kNewestOnnxOpset, visible(path), ": opset ", opset,
          " is too ", opset < kOldestOnnxOpset ? "old" : "new", "; Crema reads opsets ",
          kOldestOnnxOpset, " to ", kNewestOnnxOpset,
          ". onnx.version_converter.convert_version(model, 17) changes it");
  return static_cast<int>(opset);
}

// A node's attribute of type TENSOR, or the forms with other fields that opset 12 added.
OnnxTensor constant_of(const onnx::NodeProto& node, const std::string& folder,
                       const std::string& what) {
  OnnxTensor tensor;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    if (name == "value") return read_onnx_tensor(attribute.t(), folder, what);
    if (name == "value_float") return OnnxTensor::scalar(attribute.f());
    if (name == "value_ints")
      return OnnxTensor::of_ints({attribute.ints().begin(), attribute.ints().end()});
    if (name == "value_int") {
      tensor.is_int = true;
      tensor.ints = {attribute.i()};
      return tensor;
    }
    if (name == "value_floats") {
      tensor.floats.assign(attribute.floats().begin(), attribute.floats().end());
      tensor.shape = Shape{attribute.floats_size()};
      return tensor;
    }
  }
  fail(what, ": a Constant without a value that is a number");
}

class GraphReader {
 public:
  explicit GraphReader(const std::string& path) : folder_(folder_of(path)) { file_.path = path; }

  OnnxFile read() {
    onnx::ModelProto model = read_onnx_model(file_.path);
    file_.opset = opset_of(model, file_.path);
    for (const onnx::StringStringEntryProto& entry : model.metadata_props())
      file_.metadata[entry.key()] = entry.value();
    if (model.functions_size() > 0) {
      fail(visible(file_.path), ": the model has functions (", visible(model.functions(0).name()),
           "); onnx.inliner.inline_local_functions(model) replaces them by their nodes");
    }
    file_.graph.Swap(model.mutable_graph());
    read_initializers();
    for (const onnx::ValueInfoProto& input : file_.graph.input())
      if (file_.constants.count(input.name()) == 0) add(input.name(), "input");
    for (const onnx::NodeProto& node : file_.graph.node())
      for (const std::string& output : node.output()) made_.insert(output);
    read_nodes();
    for (const onnx::ValueInfoProto& output : file_.graph.output())
      require(known_.count(output.name()) > 0, at(), "nothing makes the output \"",
              visible(output.name()), "\"");
    return std::move(file_);
  }

 private:
  std::string at() const { return cat(visible(file_.path), ": "); }

  void add(const std::string& name, const std::string& what) {
    require(known_.insert(name).second, at(), what, ": there are two values \"", visible(name),
            "\"");
  }

  void read_initializers() {
    for (onnx::TensorProto& tensor : *file_.graph.mutable_initializer()) {
      const std::string what = cat("constant \"", visible(tensor.name()), "\"");
      add(tensor.name(), what);
      file_.constants[tensor.name()] =
          std::make_shared<OnnxTensor>(read_onnx_tensor(tensor, folder_, at() + what));
      tensor.Clear();  // large ones would be in memory twice
    }
    file_.graph.clear_initializer();
  }

  void read_nodes() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
    int index = 0;
    for (onnx::NodeProto& node : *file_.graph.mutable_node()) {
      const std::string what = node_text(node, index++);
      require(node.domain().empty() || node.domain() == "ai.onnx", at(), what,
              ": operators of the domain \"", visible(node.domain()), "\" are not known");
      for (const std::string& input : node.input()) {
        if (input.empty() || known_.count(input) > 0) continue;
        require(made_.count(input) == 0, at(), what, ": it reads \"", visible(input),
                "\", which a later node makes: nodes must be in the order of computation, without "
                "cycles");
        fail(at(), what, ": it reads \"", visible(input), "\", which nothing makes");
      }
      for (const std::string& output : node.output())
        if (!output.empty()) add(output, what);
      if (node.op_type() == "Constant" && node.output_size() == 1) {
        file_.constants[node.output(0)] =
            std::make_shared<OnnxTensor>(constant_of(node, folder_, at() + what));
        node.Clear();
      } else {
        kept.Add()->Swap(&node);
      }
    }
    file_.graph.mutable_node()->Swap(&kept);
  }

  OnnxFile file_;
  const std::string folder_;
  std::set<std::string> known_, made_;
};

}  // namespace

std::string node_text(const onnx::NodeProto& node, int index) {
  std::string text = cat("node ", index + 1, " (", visible(node.op_type()));
  if (!node.name().empty()) text += cat(" \"", visible(node.name()), "\"");
  return text + ")";
}

onnx::ModelProto read_onnx_model(const std::string& path) {
  const std::string bytes = read_file(path);
  const OuterFields::Finding finding = OuterFields(bytes).read();
  require(finding != OuterFields::Finding::foreign, visible(path), ": not an ONNX model");
  require(finding != OuterFields::Finding::truncated, visible(path), ": the file is ",
          bytes.empty() ? "empty" : "truncated: it ends in the middle of a field");
  onnx::ModelProto model;
  require(model.ParseFromString(bytes), visible(path),
          ": not an ONNX model, or a damaged one: its fields cannot be read");
  require(model.has_graph() && model.graph().node_size() + model.graph().output_size() > 0,
          visible(path), ": not an ONNX model: it has no graph");
  return model;
}

OnnxFile read_onnx(const std::string& path) { return GraphReader(path).read(); }

}  // namespace crema
