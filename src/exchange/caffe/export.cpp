#include "exchange/caffe/export.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "exchange/caffe/fields.h"
#include "exchange/caffe/fold.h"
#include "exchange/caffe/layer_rewrite.h"
#include "exchange/quantize/quantized_node.h"
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"
#include "net/prototxt/upgrade_strip.h"
#include "net/weights/weights.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

// Layers that a rewrite may add before those that they are rewritten as are all known.
constexpr int kDeepest = 12;

class DialectWriter {
 public:
  DialectWriter(Net& net, const Dialect& dialect)
      : net_(net), dialect_(dialect), graph_(net.graph()) {}

  // Rewrites all layers. go_on: errors become changes.
  void run(bool go_on) {
    for (const Node& node : net_.graph().nodes) {
      first_ = graph_.layers.size();
      why_.clear();
      field_.clear();
      try {
        at_layer(node.place, [&] {
          require_floats(node);
          add(layer_of(node), 0, {});
        });
        note_change(node);
      } catch (const Error& error) {
        if (!go_on) throw;
        changes.push_back(
            {node.place.where, field_, name_of(node), reason_of(node, error.what()), true});
        graph_.layers.resize(first_);
      }
    }
  }

  CaffeModel finish(const CaffeOptions& options) {
    if (options.fold) fold_into_products(&graph_);
    join_reshapes();
    drop_unread_layers();
    drop_unread_inputs();
    if (dialect_.has("Silence")) graph_.silence("Silence");
    CaffeModel model;
    model.net = graph_.write(net_.graph().net.name());
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      const CaffeLayer& layer = graph_.layers[i];
      model.weights.push_back(layer.blobs);
      for (size_t k = 0; k < layer.tops.size(); ++k) {
        const int id = layer.tops[k];
        if (graph_.values[id].of_net && layer.message.type() != "Input")
          model.values[id] = {layer.message.name(),
                              model.net.layer(static_cast<int>(i)).top(static_cast<int>(k)),
                              static_cast<int>(k)};
      }
    }
    model.changes = std::move(changes);
    return model;
  }

  std::vector<CaffeChange> changes;

 private:
  static std::string name_of(const Node& node) {
    return cat("layer \"", node.message.name(), "\" (", node.message.type(), ")");
  }
  // Without the prefix of at_layer().
  static std::string reason_of(const Node& node, const std::string& what) {
    const std::string prefix = cat("layer \"", node.message.name(), "\": ");
    const size_t at = what.find(prefix);
    return at == std::string::npos ? what : what.substr(at + prefix.size());
  }

  void require_floats(const Node& node) {
    if (!quantization_of(node, net_.graph())) return;
    field_ = "quantization_param";
    fail(
        "it computes with integers (quantization_param), which the layers of this dialect do not; "
        "export the net before crema quantize, or as ONNX");
  }

  CaffeLayer layer_of(const Node& node) {
    CaffeLayer layer;
    layer.message = node.message;
    // Weights are found by name.
    if (!names_.insert(node.message.name()).second)
      layer.message.set_name(graph_.unique_layer(node.message.name()));
    layer.bottoms = node.bottoms;
    layer.tops = node.tops;
    layer.place = node.place;
    for (const int id : node.parameters) layer.blobs.emplace_back(net_.graph().parameters[id]);
    if (layer.message.type() == "Input") {
      layer.message.mutable_input_param()->clear_shape();
      for (const int id : node.tops) {
        BlobShape* const shape = layer.message.mutable_input_param()->add_shape();
        for (const int64_t extent : graph_.values[id].shape.dims()) shape->add_dim(extent);
      }
    }
    return layer;
  }

  // Adds the layer, or those that express it. before: the layer of the same type that it comes from.
  void add(CaffeLayer layer, int depth, const std::string& before) {
    std::vector<Shape> shapes;
    for (int& id : layer.bottoms) {
      id = graph_.find(id);
      shapes.push_back(graph_.values[id].shape);
    }
    if (multiplies_by_one(layer)) {
      if (why_.empty()) why_ = "it multiplies by 1";
      LayerRewrite same(net_.context(), dialect_, graph_, layer, {});
      same.pass_on(layer.bottoms[0]);
      for (CaffeLayer& added : same.added) graph_.layers.push_back(std::move(added));
      return;
    }
    CaffeLayer clean = layer;
    clean_fields(dialect_, shapes.empty() ? Shape() : shapes[0], &clean);
    LayerParameter placed = clean.message;
    placed.clear_bottom();
    placed.clear_top();
    for (const int id : layer.bottoms) placed.add_bottom(std::to_string(id));
    std::vector<Shape> tops;
    for (const int id : layer.tops) {
      placed.add_top(std::to_string(id));
      tops.push_back(graph_.values[id].shape);
    }
    const std::vector<Misfit> misfits = dialect_.misfits(placed, shapes, tops);
    if (clean.message.type() == "Power" && clean.message.power_param().scale() == 0) {
      const PowerParameter& p = clean.message.power_param();
      constants_[clean.tops[0]] = std::pow(p.shift(), p.power());
    }
    if (misfits.empty()) {
      add_defaults(dialect_, &clean.message);
      graph_.layers.push_back(std::move(clean));
      return;
    }
    if (why_.empty()) why_ = text_of(misfits);
    for (const Misfit& misfit : misfits)
      if (depth == 0 && field_.empty()) field_ = misfit.field;
    const std::string now = placed.SerializeAsString();
    const LayerRewriter* const rewriter = LayerRewriterRegistry::find(layer.message.type());
    require(rewriter != nullptr && depth < kDeepest && now != before, text_of(misfits),
            rewriter ? "" : ", and no other layers express it",
            "; use another layer, end the net before it (-cut), or choose another dialect");
    LayerRewrite rewrite(net_.context(), dialect_, graph_, layer, misfits);
    rewriter->rewrite(rewrite);
    for (CaffeLayer& added : rewrite.added) add(std::move(added), depth + 1, now);
  }

  // What stochastic depth leaves in inference: factors that are 1 for any input.
  bool multiplies_by_one(const CaffeLayer& layer) const {
    if (layer.message.type() != "Scale" || layer.bottoms.size() != 2 || !layer.blobs.empty())
      return false;
    const auto constant = constants_.find(layer.bottoms[1]);
    return constant != constants_.end() && constant->second == 1;
  }

  // A Reshape of a reshaped blob reshapes the blob before.
  void join_reshapes() {
    std::vector<int> makers(graph_.values.size(), -1);
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      CaffeLayer& layer = graph_.layers[i];
      for (const int id : layer.tops) makers[id] = static_cast<int>(i);
      if (layer.message.type() != "Reshape") continue;
      const int maker = makers[layer.bottoms[0]];
      if (maker < 0 || graph_.layers[maker].message.type() != "Reshape") continue;
      layer.bottoms = graph_.layers[maker].bottoms;
      const Shape &x = graph_.values[layer.bottoms[0]].shape,
                  &y = graph_.values[layer.tops[0]].shape;
      layer.message.clear_reshape_param();
      BlobShape& shape = *layer.message.mutable_reshape_param()->mutable_shape();
      for (const int64_t extent : y.dims()) shape.add_dim(extent);
      if (x.axes() > 0 && y.axes() > 0 && x[0] == y[0]) shape.set_dim(0, 0);
    }
  }

  // Layers that only made what is no longer needed.
  void drop_unread_layers() {
    std::vector<int> reads = graph_.reads();
    for (size_t i = graph_.layers.size(); i-- > 0;) {
      const CaffeLayer& layer = graph_.layers[i];
      const bool needed = layer.tops.empty() || layer.message.type() == "Input" ||
                          std::any_of(layer.tops.begin(), layer.tops.end(), [&](int id) {
                            return reads[id] > 0 || graph_.values[id].output;
                          });
      if (needed) continue;
      for (const int id : layer.bottoms) --reads[id];
      graph_.layers.erase(graph_.layers.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // Drops what a replaced layer needed and its replacement does not.
  void drop_unread_inputs() {
    const std::vector<int> reads = graph_.reads();
    std::erase_if(graph_.layers, [&](const CaffeLayer& layer) {
      return layer.message.type() == "Input" &&
             std::all_of(layer.tops.begin(), layer.tops.end(),
                         [&](int id) { return reads[id] == 0 && !graph_.values[id].output; });
    });
  }

  void note_change(const Node& node) {
    if (why_.empty()) return;
    std::vector<std::string> types;
    for (size_t i = first_; i < graph_.layers.size(); ++i)
      types.push_back(graph_.layers[i].message.type());
    changes.push_back({node.place.where, field_, name_of(node),
                       types.empty() ? "it changes nothing in inference, and is left out"
                                     : cat(why_, "; it becomes ", join(types, ", ")),
                       false});
  }

  Net& net_;
  const Dialect& dialect_;
  CaffeGraph graph_;
  std::set<std::string> names_;      // names of the layers so far
  size_t first_ = 0;                 // the first layer of the current node
  std::string why_, field_;          // the current node cannot stay
  std::map<int, double> constants_;  // values that are one number, whatever the net reads
};

}  // namespace

CaffeModel export_caffe(Net& net, const Dialect& dialect, const CaffeOptions& options) {
  DialectWriter writer(net, dialect);
  writer.run(false);
  return writer.finish(options);
}

std::vector<CaffeChange> check_caffe(Net& net, const Dialect& dialect) {
  DialectWriter writer(net, dialect);
  writer.run(true);
  return writer.changes;
}

void write_caffe_weights(Context& context, const CaffeModel& model, const std::string& path) {
  WeightsContent content;
  content.net = model.net;
  for (int i = 0; i < model.net.layer_size(); ++i) {
    LayerParameter& layer = *content.net.mutable_layer(i);
    layer.set_phase(TEST);
    strip_fork_fields(&layer);
    std::vector<int>& parameters = content.parameters_of_layer.emplace_back();
    for (const CaffeBlob& blob : model.weights[i]) {
      const int index = static_cast<int>(parameters.size());
      parameters.push_back(static_cast<int>(content.parameters.size()));
      auto* const values = const_cast<float*>(blob.values.data());  // only read
      content.parameters.push_back(
          {layer.name(), index, Tensor::wrap(values, blob.shape, DType::f32), {}});
    }
  }
  write_caffemodel(context, content, path);
}

}  // namespace crema
