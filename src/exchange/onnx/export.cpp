#include "exchange/onnx/export.h"

#include <algorithm>
#include <set>

#include "exchange/onnx/rounding.h"
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"

namespace crema {

namespace {

bool is_input(const Node& node) { return node.message.type() == "Input"; }

// The extents of all values that grow with the batch. Empty, with a reason: other batches do not
// fit the net.
struct BatchAxes {
  std::vector<std::vector<bool>> of_value;
  std::string why_not;
};

// Where these inputs have another batch.
BatchAxes axes_that_grow(Net& net, const std::vector<std::pair<std::string, Shape>>& larger) {
  const Net::Shapes before = net.shapes();
  const Graph& graph = net.graph();
  BatchAxes axes;
  try {
    net.reshape(larger);
    for (size_t id = 0; id < graph.values.size(); ++id) {
      const Shape &now = graph.values[id].shape, &small = before.values[id];
      std::vector<bool>& of = axes.of_value.emplace_back();
      for (int axis = 0; axis < small.axes(); ++axis)
        of.push_back(axis < now.axes() && now[axis] != small[axis]);
    }
  } catch (const Error& error) {
    axes.of_value.clear();
    axes.why_not = error.what();
  }
  net.restore(before);
  return axes;
}

// Inputs whose first extent is that of the first input are taken for batches. If that fits no layer,
// one of the others, such as im_info of 1x3 for a batch of 1, may have this extent by chance.
BatchAxes find_batch_axes(Net& net) {
  std::vector<std::pair<std::string, Shape>> larger;
  int64_t batch = -1;
  for (const Node& node : net.graph().nodes) {
    if (!is_input(node)) continue;
    for (const int id : node.tops) {
      const Value& value = net.graph().values[id];
      if (value.shape.axes() == 0) continue;
      if (batch < 0) batch = value.shape[0];
      if (value.shape[0] != batch) continue;
      Shape shape = value.shape;
      shape[0] = batch + 1;
      larger.emplace_back(value.blob, shape);
    }
  }
  const BatchAxes axes = axes_that_grow(net, larger);
  for (size_t i = 1; !axes.why_not.empty() && i < larger.size(); ++i) {
    std::vector<std::pair<std::string, Shape>> others = larger;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    BatchAxes without = axes_that_grow(net, others);
    if (without.why_not.empty()) return without;
  }
  return axes;
}

void describe_pictures(const PictureInput& input, const std::string& name, int64_t batch,
                       bool any_batch, onnx::ValueInfoProto* info) {
  info->set_name(name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::UINT8);
  const auto add = [&](bool open, const char* axis, int64_t extent) {
    onnx::TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
    open ? dim->set_dim_param(axis) : dim->set_dim_value(extent);
  };
  add(any_batch, "N", batch);
  add(input.resizes, "height", input.height);
  add(input.resizes, "width", input.width);
  add(false, "channels", input.channels);
}

void describe(const OnnxValue& value, int64_t batch, onnx::ValueInfoProto* info) {
  info->set_name(value.name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  onnx::TensorShapeProto* shape = type->mutable_shape();
  for (int axis = 0; axis < value.shape.axes(); ++axis) {
    onnx::TensorShapeProto::Dimension* dim = shape->add_dim();
    if (!value.of_data.empty() && value.of_data[axis]) {
      dim->set_dim_param(cat(value.name, ".", axis));
    } else if (!value.of_batch[axis]) {
      dim->set_dim_value(value.shape[axis]);
    } else if (value.shape[axis] == batch) {
      dim->set_dim_param("N");
    } else if (value.shape[axis] % batch == 0) {
      dim->set_dim_param(cat("N*", value.shape[axis] / batch));
    }
  }
}

class Exporter {
 public:
  Exporter(Net& net, const OnnxOptions& options, const PictureInputs& pictures)
      : net_(net), options_(options), pictures_(pictures), onnx_(options.opset) {}

  OnnxModel run() {
    std::vector<std::string> names = onnx_names(graph());
    for (const auto& [blob, input] : pictures_) {
      onnx_.reserve(blob);
      *std::find(names.begin(), names.end(), blob) = blob + "/prepared";
    }
    BatchAxes axes;
    if (options_.any_batch) axes = find_batch_axes(net_);
    if (!axes.why_not.empty()) throw NeedsFixedBatch(axes.why_not);
    for (size_t id = 0; id < names.size(); ++id) {
      const Shape& shape = graph().values[id].shape;
      values_.push_back(
          {names[id],
           shape,
           options_.any_batch ? axes.of_value[id] : std::vector<bool>(shape.axes(), false),
           {}});
      onnx_.reserve(names[id]);
    }
    const std::vector<bool> needed = needed_nodes();
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) add(graph().nodes[i]);
    for (const int id : outputs()) kept_.insert(values_[id].name);
    onnx_.drop_identities(kept_);
    if (options_.fold) onnx_.fold_lines(kept_);
    return write();
  }

 private:
  const Graph& graph() const { return net_.graph(); }

  // The results of the model. In training these are the losses.
  std::vector<int> outputs() const {
    if (!options_.training) return graph().outputs;
    std::vector<int> losses;
    for (size_t id = 0; id < graph().values.size(); ++id)
      if (graph().values[id].loss_weight != 0) losses.push_back(static_cast<int>(id));
    return losses;
  }

  // All; in training those that lead to losses, and the inputs.
  std::vector<bool> needed_nodes() const {
    const std::vector<Node>& nodes = graph().nodes;
    std::vector<bool> needed(nodes.size(), !options_.training);
    if (!options_.training) return needed;
    std::set<int> values;
    for (const int id : outputs()) values.insert(id);
    for (size_t i = nodes.size(); i-- > 0;) {
      needed[i] = is_input(nodes[i]);
      for (const int top : nodes[i].tops) needed[i] = needed[i] || values.count(top) > 0;
      if (needed[i]) values.insert(nodes[i].bottoms.begin(), nodes[i].bottoms.end());
    }
    return needed;
  }

  void add(const Node& node) {
    at_layer(node.place, [&] {
      onnx_.at(node.message.name(), node.place.where);
      LayerExport layer(onnx_, options_, graph(), node, values_,
                        [&](int value) { return computed(value); });
      try {
        is_input(node) ? add_inputs(node, layer) : write_layer(node, layer);
        onnx_.end_layer();
      } catch (const NeedsFixedBatch& reason) {
        fixed_batch_ = reason.what();  // at_layer would make it an Error like others
      }
    });
    if (!fixed_batch_.empty()) throw NeedsFixedBatch(fixed_batch_);
  }

  void write_layer(const Node& node, LayerExport& layer) {
    const std::optional<LinearQuantization> quantization = quantization_of(node, graph());
    require(
        !quantization || options_.trained.empty(),
        "it computes with 8-bit integers, which have no gradient in C; train the net in float32, "
        "and quantize it afterwards");
    if (!quantization || !quantization->y) return find_exporter(node).write(layer);
    std::vector<std::string> names;  // the tops'
    for (const int id : node.tops) {
      names.push_back(values_[id].name);
      values_[id].name = onnx_.unique(values_[id].name + ".exact");
    }
    find_exporter(node).write(layer);
    for (size_t i = 0; i < names.size(); ++i) {
      std::swap(values_[node.tops[i]].name, names[i]);
      write_rounded(onnx_, names[i], values_[node.tops[i]].name, *quantization->y);
    }
  }

  const LayerExporter& find_exporter(const Node& node) const {
    const LayerExporter* const exporter = LayerExporterRegistry::find(node.message.type());
    require(exporter != nullptr && (options_.training || !exporter->training), "a layer of type ",
            node.message.type(),
            " cannot be written as ONNX operators; replace it by layers that can, or end the net "
            "before it");
    return *exporter;
  }

  void add_inputs(const Node& node, LayerExport& layer) {
    for (size_t top = 0; top < node.tops.size(); ++top) {
      const int id = node.tops[top];
      inputs_.push_back(id);
      const auto picture = pictures_.find(graph().values[id].blob);
      if (picture == pictures_.end()) {
        kept_.insert(values_[id].name);
      } else {
        write_picture_input(picture->second, picture->first, static_cast<int>(top), layer);
      }
    }
  }

  // The values of a blob for inputs of zero.
  std::vector<float> computed(int value) {
    if (!ran_) net_.forward(0);
    ran_ = true;
    return to_floats(net_.context(), net_.plan().value(value));
  }

  OnnxModel write() {
    OnnxModel result;
    result.trained = onnx_.trained();
    onnx::ModelProto& model = result.model;
    model.set_ir_version(ir_version_of(options_.opset));
    model.set_producer_name("crema");
    onnx::OperatorSetIdProto* set = model.add_opset_import();
    set->set_domain("");
    set->set_version(options_.opset);
    onnx::GraphProto* to = model.mutable_graph();
    to->set_name(net_.name().empty() ? "net" : net_.name());
    onnx_.write(to);

    int64_t batch = 1;
    for (const int id : inputs_) {
      if (id == inputs_.front() && values_[id].shape.axes() > 0) batch = values_[id].shape[0];
      const auto picture = pictures_.find(graph().values[id].blob);
      if (picture == pictures_.end()) {
        describe(values_[id], batch, to->add_input());
      } else {
        describe_pictures(picture->second, picture->first, values_[id].shape[0], options_.any_batch,
                          to->add_input());
      }
    }
    for (const int id : outputs()) describe(values_[id], batch, to->add_output());
    std::set<std::string> made;
    for (const onnx::NodeProto& node : to->node())
      made.insert(node.output().begin(), node.output().end());
    for (size_t id = 0; id < values_.size(); ++id) {
      if (!made.count(values_[id].name)) continue;
      result.values[static_cast<int>(id)] = values_[id].name;
      if (!kept_.count(values_[id].name)) describe(values_[id], batch, to->add_value_info());
    }
    return result;
  }

  Net& net_;
  const OnnxOptions options_;
  const PictureInputs& pictures_;
  OnnxGraph onnx_;
  std::vector<OnnxValue> values_;
  std::vector<int> inputs_;
  std::set<std::string> kept_;  // names of the model's inputs and outputs
  std::string fixed_batch_;     // why a layer needs one
  bool ran_ = false;
};

}  // namespace

std::vector<std::string> onnx_names(const Graph& graph) {
  std::map<std::string, int> named;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const std::string& blob = graph.values[id].blob;
    const auto found = named.find(blob);
    if (found == named.end() || !is_input(graph.nodes[graph.values[found->second].producer]))
      named[blob] = static_cast<int>(id);
  }
  std::set<std::string> taken;
  for (const auto& [blob, id] : named) taken.insert(blob);
  std::vector<std::string> names;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (named[value.blob] == static_cast<int>(id)) {
      names.push_back(value.blob);
      continue;
    }
    std::string name = cat(value.blob, "/", graph.nodes[value.producer].message.name());
    while (!taken.insert(name).second) name += "_";
    names.push_back(name);
  }
  return names;
}

int ir_version_of(int opset) {
  // The first opset of each version of the format.
  constexpr struct { int opset, ir; } kFirst[] = {{21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}};
  require(opset <= 21, "opset ", opset, " is too new; Crema writes opsets 11 to 21");
  for (const auto& first : kFirst)
    if (opset >= first.opset) return first.ir;
  fail("opset ", opset, " is too old; Crema writes opsets 11 to 21");
}

OnnxModel export_onnx(Net& net, OnnxOptions options, const PictureInputs& pictures) {
  ir_version_of(options.opset);
  if (options.any_batch) {
    try {
      return Exporter(net, options, pictures).run();
    } catch (const NeedsFixedBatch& reason) {
      options.any_batch = false;
      OnnxModel model = Exporter(net, options, pictures).run();
      model.notes.push_back(
          cat("The batch has the size of the net and cannot be changed: ", reason.what()));
      return model;
    }
  }
  return Exporter(net, options, pictures).run();
}

}  // namespace crema
