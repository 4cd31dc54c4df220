#include "net/graph/splits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "net/graph/taken_layers.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

using Top = std::pair<int, int>;  // layer, index of the top

std::string split_name(const std::string& layer, const std::string& blob, int top) {
  return cat(blob, "_", layer, "_", top, "_split");
}

struct Uses {
  std::vector<std::vector<Top>> sources;  // for each layer, for each bottom: what produces it
  std::map<Top, int> readers;             // a loss weight counts as one
  std::map<Top, float> loss_weight;
};

std::vector<std::string> names_of(const std::map<std::string, Top>& producers) {
  std::vector<std::string> names;
  for (const auto& entry : producers) names.push_back(entry.first);
  return names;
}

// The message about a bottom that no layer above makes.
std::string about_missing(const NetParameter& net, const std::string& blob,
                          const std::map<std::string, Top>& producers,
                          const std::function<std::string(const std::string&)>& why_missing) {
  const std::string why = why_missing ? why_missing(blob) : "";
  if (!why.empty()) return "; " + why;
  for (const LayerParameter& layer : net.layer()) {
    if (std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end())
      return cat("; layer \"", layer.name(), "\" makes it further down: move that one up");
  }
  for (const LayerParameter& layer : net.layer()) {
    const bool has_labels = layer.type() == "Data" || layer.type() == "ImageData";
    if (blob == "label" && has_labels && layer.top_size() == 1)
      return cat("; layer \"", layer.name(),
                 "\" makes labels as its second top: add top: \"label\"");
  }
  return producers.empty() ? "; no layer above makes data: is there one for this phase, or does it "
                             "take a -stage?"
                           : did_you_mean(blob, names_of(producers));
}

Uses find_uses(const NetParameter& net, const std::function<void(const SplitFault&)>& refuse,
               const std::function<std::string(const std::string&)>& why_missing) {
  Uses uses;
  std::map<std::string, Top> producer;
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    uses.sources.emplace_back();
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const auto at = producer.find(layer.bottom(j));
      if (at == producer.end()) {
        const std::string& blob = layer.bottom(j);
        refuse({i,
                cat("bottom ", j, " is \"", blob, "\", but no layer above has such a top",
                    about_missing(net, blob, producer, why_missing)),
                blob, !producer.empty()});
      }
      uses.sources[i].push_back(at->second);
      ++uses.readers[at->second];
    }
    for (int j = 0; j < layer.top_size(); ++j) {
      const bool in_place = j < layer.bottom_size() && layer.bottom(j) == layer.top(j);
      const auto at = producer.find(layer.top(j));
      if (!in_place && at != producer.end()) {
        refuse(
            {i,
             cat("top \"", layer.top(j), "\" is made by layer \"",
                 net.layer(at->second.first).name(),
                 "\" already: give this one another name, or name it as a bottom too (in place)"),
             "", true});
      }
      producer[layer.top(j)] = {i, j};
    }
    for (int j = 0; j < std::min(layer.loss_weight_size(), layer.top_size()); ++j) {
      if (layer.loss_weight(j) == 0) continue;
      uses.loss_weight[{i, j}] = layer.loss_weight(j);
      ++uses.readers[{i, j}];
    }
  }
  return uses;
}

}  // namespace

NetParameter insert_splits(const NetParameter& net, std::vector<int>* origin,
                           const std::function<void(const SplitFault& fault)>& refuse,
                           const std::function<std::string(const std::string& blob)>& why_missing) {
  const Uses uses = find_uses(net, refuse, why_missing);
  const auto readers = [&](Top top) {
    const auto at = uses.readers.find(top);
    return at == uses.readers.end() ? 0 : at->second;
  };
  std::map<Top, int> next;  // which branch of a split is used next
  NetParameter result = net;
  std::vector<std::unique_ptr<LayerParameter>> layers = take_layers(&result);
  origin->clear();
  for (int i = 0; i < net.layer_size(); ++i) {
    const int position = result.layer_size();
    LayerParameter* const layer = layers[static_cast<size_t>(i)].release();
    result.mutable_layer()->AddAllocated(layer);
    origin->push_back(i);
    for (int j = 0; j < layer->bottom_size(); ++j) {
      const Top source = uses.sources[i][j];
      if (readers(source) < 2) continue;
      const LayerParameter& maker = net.layer(source.first);
      layer->set_bottom(j, cat(split_name(maker.name(), maker.top(source.second), source.second),
                               "_", next[source]++));
    }
    const int tops = layer->top_size();
    for (int j = 0; j < tops; ++j) {
      const Top top{i, j};
      const int count = readers(top);
      if (count < 2) continue;
      const auto weight = uses.loss_weight.find(top);
      LayerParameter* split = result.add_layer();
      origin->push_back(i);
      const std::string name = split_name(net.layer(i).name(), net.layer(i).top(j), j);
      split->set_name(name);
      split->set_type("Split");
      split->add_bottom(net.layer(i).top(j));
      for (int k = 0; k < count; ++k) {
        split->add_top(cat(name, "_", k));
        if (weight != uses.loss_weight.end()) split->add_loss_weight(k == 0 ? weight->second : 0);
      }
      if (weight != uses.loss_weight.end()) {
        result.mutable_layer(position)->clear_loss_weight();
        ++next[top];
      }
    }
  }
  return result;
}

}  // namespace crema
