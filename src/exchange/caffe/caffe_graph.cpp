#include "exchange/caffe/caffe_graph.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace crema {

namespace {

// Layers that may write to their bottom, in Caffe and in what reads its files.
bool works_in_place(const std::string& type) {
  static const std::set<std::string> types = {"BatchNorm", "Dropout", "ELU",     "Power", "PReLU",
                                              "ReLU",      "Scale",   "Sigmoid", "TanH"};
  return types.count(type) > 0;
}

class BlobNames {
 public:
  explicit BlobNames(const CaffeGraph& graph) : graph_(graph), reads_(graph.reads()) {
    makers_.assign(graph.values.size(), -1);
    readers_.assign(graph.values.size(), -1);
    for (size_t i = 0; i < graph.layers.size(); ++i) {
      for (const int id : graph.layers[i].tops) makers_[id] = static_cast<int>(i);
      for (const int id : graph.layers[i].bottoms) readers_[id] = static_cast<int>(i);
    }
  }

  std::vector<std::string> run() {
    names_.resize(graph_.values.size());
    std::map<std::string, std::vector<int>> versions;
    for (const CaffeLayer& layer : graph_.layers)
      for (const int id : layer.tops)
        if (graph_.values[id].of_net) versions[graph_.values[id].blob].push_back(id);
    for (const auto& [blob, ids] : versions) taken_.insert(blob);
    for (const auto& [blob, ids] : versions) name_versions(blob, ids);
    for (const CaffeLayer& layer : graph_.layers)
      for (const int id : layer.tops)
        if (names_[id].empty()) names_[id] = unique(graph_.values[id].blob);
    return std::move(names_);
  }

 private:
  void name_versions(const std::string& blob, const std::vector<int>& ids) {
    const bool of_input = graph_.layers[makers_[ids[0]]].message.type() == "Input";
    bool same = true;  // with the later version
    for (size_t k = ids.size(); k-- > 0;) {
      const int id = ids[k];
      if (k + 1 < ids.size()) same = same && reads_[id] == 1 && in_place(id, ids[k + 1]);
      const bool named = k == 0 && of_input ? true : same;
      names_[id] = named ? blob : "";
    }
    // What follows an input that keeps its name has another one, unless it works in place.
    if (of_input && !same)
      for (size_t k = 1; k < ids.size(); ++k) names_[ids[k]].clear();
    for (const int id : ids) {
      if (names_[id].empty())
        names_[id] = unique(cat(blob, "/", graph_.layers[makers_[id]].message.name()));
    }
  }

  bool in_place(int value, int next) const {
    const CaffeLayer& layer = graph_.layers[readers_[value]];
    return works_in_place(layer.message.type()) && !graph_.values[value].output &&
           layer.tops.size() == 1 && layer.tops[0] == next && layer.bottoms[0] == value;
  }

  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int number = 2; !taken_.insert(name).second; ++number) name = cat(wish, "_", number);
    return name;
  }

  const CaffeGraph& graph_;
  const std::vector<int> reads_;
  std::vector<int> makers_, readers_;
  std::vector<std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

CaffeGraph::CaffeGraph(const Graph& net) {
  for (const Value& value : net.values)
    values.push_back({value.blob, value.shape, true, value.output, -1});
  for (const Node& node : net.nodes) layer_names_.insert(node.message.name());
}

int CaffeGraph::add_value(const std::string& wish, const Shape& shape) {
  values.push_back({wish, shape, false, false, -1});
  return static_cast<int>(values.size()) - 1;
}

int CaffeGraph::find(int value) const {
  while (values[value].same_as >= 0) value = values[value].same_as;
  return value;
}

std::string CaffeGraph::unique_layer(const std::string& wish) {
  std::string name = wish;
  for (int number = 2; !layer_names_.insert(name).second; ++number) name = cat(wish, "_", number);
  return name;
}

int CaffeGraph::maker_of(int value) const {
  for (size_t i = layers.size(); i-- > 0;) {
    const std::vector<int>& tops = layers[i].tops;
    if (std::find(tops.begin(), tops.end(), value) != tops.end()) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> CaffeGraph::reads() const {
  std::vector<int> reads(values.size());
  for (const CaffeLayer& layer : layers)
    for (const int id : layer.bottoms) ++reads[id];
  return reads;
}

void CaffeGraph::silence(const std::string& type) {
  const std::vector<int> reads = this->reads();
  for (size_t i = 0; i < layers.size(); ++i) {
    CaffeLayer silence;
    for (const int id : layers[i].tops)
      if (reads[id] == 0 && !values[id].output) silence.bottoms.push_back(id);
    if (silence.bottoms.empty() || layers[i].message.type() == "Input") continue;
    silence.message.set_type(type);
    silence.message.set_name(unique_layer(cat(layers[i].message.name(), "/", lower_case(type))));
    silence.place = layers[i].place;
    layers.insert(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, silence);
    ++i;
  }
}

NetParameter CaffeGraph::write(const std::string& net_name) const {
  NetParameter net;
  if (!net_name.empty()) net.set_name(net_name);
  const std::vector<std::string> names = BlobNames(*this).run();
  for (const CaffeLayer& layer : layers) {
    LayerParameter& message = *net.add_layer();
    message = layer.message;
    message.clear_bottom();
    message.clear_top();
    for (const int id : layer.bottoms) message.add_bottom(names[id]);
    for (const int id : layer.tops) message.add_top(names[id]);
  }
  return net;
}

}  // namespace crema
