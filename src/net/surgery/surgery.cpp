#include "net/surgery/surgery.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "layers/layer_facts.h"
#include "net/graph/graph_builder.h"
#include "net/surgery/surgery_layers.h"

namespace crema {

namespace {

enum class Kind {
  other,  // as it was
  image,  // as it was: samples x channels x height x width
  flat,   // an image in one row; the layer that made a row of it is left out
  map,    // it was a row of scores for each sample, and becomes a map of them
};

// The last version of a blob.
struct SurgeryBlob {
  Kind kind = Kind::other;
  std::string name;    // in the new net; "" when another blob has taken it
  Shape shape;         // before; of a flat one the image's
  std::string pooled;  // the warning, when it is what a global pooling leaves
};

// For each layer the shapes of its tops; the graph has Split layers in between.
std::vector<std::vector<Shape>> shapes_of_tops(const NetParameter& net, const Graph& graph) {
  std::vector<std::vector<Shape>> shapes;
  for (int j = 0; j < graph.net.layer_size(); ++j) {
    const int i = static_cast<int>(shapes.size());
    if (i == net.layer_size() || graph.net.layer(j).name() != net.layer(i).name()) continue;
    shapes.emplace_back();
    for (const int top : graph.views[j].tops) shapes.back().push_back(graph.values[top].shape);
  }
  require(shapes.size() == static_cast<size_t>(net.layer_size()),
          "the graph is not the net's: ", shapes.size(), " of ", net.layer_size(), " layers");
  return shapes;
}

class Surgeon {
 public:
  Surgeon(const NetParameter& net, const Graph& graph, const std::function<std::string(int)>& where)
      : net_(net), where_(where), shapes_(shapes_of_tops(net, graph)) {}

  Surgery run() {
    made_.net = net_;
    made_.net.clear_layer();
    for (int i = 0; i < net_.layer_size(); ++i)
      at_layer({net_.layer(i).name(), where_(i)}, [&] { add(i); });
    require(products_ > 0, net_.layer_size() > 0 ? where_(0) + ": " : "",
            "nothing to convert: no InnerProduct of the net reads an image (samples x channels x "
            "height x width)");
    return std::move(made_);
  }

 private:
  void add(int i) {
    const LayerParameter& layer = net_.layer(i);
    std::vector<SurgeryBlob> bottoms;
    for (const std::string& name : layer.bottom()) bottoms.push_back(blobs_[name]);
    for (const SurgeryBlob& bottom : bottoms)
      require(!bottom.name.empty(),
              "it reads a flattened blob of which the image has been changed in place meanwhile; "
              "give that layer's top another name");
    if (layer.type() == "InnerProduct" && bottoms[0].kind != Kind::other)
      return convert(i, bottoms[0]);
    if (bottoms.size() == 1 && shapes_[i].size() == 1 && flattens(i, bottoms[0]))
      return leave_out(i, bottoms[0]);
    const auto maps = std::count_if(bottoms.begin(), bottoms.end(), [](const SurgeryBlob& bottom) {
      return bottom.kind == Kind::map;
    });
    require(
        maps == 0 || maps == std::ssize(bottoms) || facts_of(layer.type()).kind == LayerKind::sink,
        "some of its bottoms become maps of scores, others do not: ", join_kinds(bottoms));
    append(i, maps > 0 ? for_maps(layer) : layer, bottoms);
    for (int k = 0; k < layer.top_size(); ++k) {
      SurgeryBlob top{Kind::other, layer.top(k), shapes_[i][k], ""};
      if (maps > 0) {
        top.kind = Kind::map;
      } else if (!bottoms.empty() && bottoms[0].kind == Kind::flat) {
        top.kind = Kind::image;
        top.shape = bottoms[0].shape;
      } else if (top.shape.axes() == 4) {
        top.kind = Kind::image;
      }
      if (facts_of(layer.type()).elementwise) top.pooled = bottoms[0].pooled;
      if (layer.pooling_param().global_pooling()) top.pooled = pooling_advice(layer, bottoms[0]);
      set_top(top);
    }
  }

  static std::string join_kinds(const std::vector<SurgeryBlob>& bottoms) {
    std::vector<std::string> words;
    for (const SurgeryBlob& bottom : bottoms)
      words.push_back(
          cat("\"", bottom.name, "\" ", bottom.kind == Kind::map ? "does" : "does not"));
    return join(words, ", ");
  }

  static std::string pooling_advice(const LayerParameter& layer, const SurgeryBlob& bottom) {
    const std::string field = cat("-set 'layer[", layer.name(), "].pooling_param.");
    const bool square = bottom.shape.axes() == 4 && bottom.shape[2] == bottom.shape[3];
    const std::string size =
        square ? cat(" ", field, "kernel_size=", bottom.shape[2], "'") : std::string();
    return cat("Layer ", layer.name(),
               " pools whole images, of any size: a larger image gives one score, no map, unless ",
               field, "global_pooling=false'", size);
  }

  void convert(int i, const SurgeryBlob& bottom) {
    const LayerParameter& layer = net_.layer(i);
    // A row of scores is an image of one pixel.
    const bool row = bottom.kind == Kind::map;
    const Shape image = row ? Shape{bottom.shape.count(1), 1, 1}
                            : Shape{bottom.shape[1], bottom.shape[2], bottom.shape[3]};
    const LayerParameter made = as_convolution(layer, image, bottom.kind == Kind::image ? 4 : 2);
    if (layer.inner_product_param().transpose()) made_.transposed.insert(layer.name());
    if (!bottom.pooled.empty()) made_.warnings.push_back(bottom.pooled);
    made_.changes.push_back(cat(layer.name(), ": InnerProduct of ", image.brief(), " -> ",
                                layer.inner_product_param().num_output(), " becomes Convolution ",
                                image[1], "x", image[2]));
    ++products_;
    append(i, made, {bottom});
    set_top({Kind::map, layer.top(0), shapes_[i][0], ""});
  }

  // Whether the layer only makes a row of each image, and only layers that will read images read
  // the row. A row of scores is already one.
  bool flattens(int i, const SurgeryBlob& bottom) const {
    const std::string& type = net_.layer(i).type();
    if (type != "Flatten" && type != "Reshape") return false;
    const Shape& row = shapes_[i][0];
    if (row.axes() != 2 || row[0] != bottom.shape[0]) return false;
    if (bottom.kind == Kind::map) return bottom.shape.axes() == 2 && is_read(i);
    return bottom.kind == Kind::image && leads_to_products(i, net_.layer(i).top(0));
  }

  bool is_read(int from) const {
    const std::string& blob = net_.layer(from).top(0);
    return std::any_of(net_.layer().begin() + from + 1, net_.layer().end(), [&](const auto& layer) {
      return std::find(layer.bottom().begin(), layer.bottom().end(), blob) != layer.bottom().end();
    });
  }

  bool leads_to_products(int from, const std::string& blob) const {
    int readers = 0;
    for (int i = from + 1; i < net_.layer_size(); ++i) {
      const LayerParameter& layer = net_.layer(i);
      const bool reads =
          std::find(layer.bottom().begin(), layer.bottom().end(), blob) != layer.bottom().end();
      if (reads) {
        ++readers;
        const bool leads = layer.type() == "InnerProduct" ||
                           (facts_of(layer.type()).elementwise && layer.top_size() == 1 &&
                            leads_to_products(i, layer.top(0)));
        if (!leads || layer.bottom_size() > 1) return false;
      }
      // A later version.
      if (std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end()) break;
    }
    return readers > 0;
  }

  void leave_out(int i, const SurgeryBlob& bottom) {
    const LayerParameter& layer = net_.layer(i);
    made_.changes.push_back(cat(layer.name(), ": ", layer.type(), " is left out"));
    SurgeryBlob top = bottom;
    if (bottom.kind == Kind::image) top.kind = Kind::flat;
    blobs_[layer.top(0)] = top;
  }

  void append(int i, const LayerParameter& layer, const std::vector<SurgeryBlob>& bottoms) {
    LayerParameter* made = made_.net.add_layer();
    *made = layer;
    for (int k = 0; k < made->bottom_size(); ++k) made->set_bottom(k, bottoms[k].name);
    made_.origins.push_back(i);
  }

  void set_top(const SurgeryBlob& top) {
    for (auto& [key, blob] : blobs_) {
      if (key != top.name && blob.name == top.name) blob.name.clear();
    }
    blobs_[top.name] = top;
  }

  const NetParameter& net_;
  const std::function<std::string(int)>& where_;
  const std::vector<std::vector<Shape>> shapes_;
  std::map<std::string, SurgeryBlob> blobs_;
  int products_ = 0;
  Surgery made_;
};

}  // namespace

Surgery make_fully_convolutional(const NetParameter& net, const Graph& graph,
                                 const std::function<std::string(int)>& where) {
  return Surgeon(net, graph, where).run();
}

void copy_weights(Net& from, Net& to, const std::set<std::string>& turned) {
  std::map<std::pair<std::string, int>, const Parameter*> given;
  for (const Parameter& parameter : from.parameters())
    given[{parameter.layer, parameter.index}] = &parameter;
  for (Parameter& parameter : to.parameters()) {
    const auto at = given.find({parameter.layer, parameter.index});
    require(at != given.end() && at->second->shape.count() == parameter.shape.count(), "layer \"",
            parameter.layer, "\": parameter ", parameter.index, " is ", parameter.shape.brief(),
            at == given.end() ? ", which the given net does not have"
                              : cat(", but ", at->second->shape.brief(), " in the given net"));
    std::vector<float> values = to_floats(from.context(), at->second->data);
    if (parameter.index == 0 && turned.count(parameter.layer)) {
      values = transposed(values, parameter.shape.count(1), parameter.shape[0]);
    }
    from_floats(to.context(), values.data(), parameter.data);
  }
  to.parameters_changed();
}

}  // namespace crema
