#include "net/deploy/deploy_graph.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "layers/layer.h"
#include "net/sources/batch_size.h"
#include "proto/filler.pb.h"

namespace crema {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

bool is_real_source(const LayerParameter& layer) {
  return is_source(layer) && facts_of(layer.type()).content != SourceContent::generated;
}

bool is_made_up(const NetParameter& net, const LayerParameter& layer) {
  return !is_real_source(layer) &&
         std::any_of(net.layer().begin(), net.layer().end(), is_real_source);
}

bool is_a_loss(const LayerParameter& layer) {
  for (const float weight : layer.loss_weight()) {
    if (weight != 0) return true;
  }
  if (layer.type() == "Python") return make_layer(layer, false)->is_loss();
  return facts_of(layer.type()).kind == LayerKind::loss;
}

// Layers of py-faster-rcnn, including ones written in Python.
bool is_python(const LayerParameter& layer, const char* name) {
  return layer.type() == "Python" && layer.python_param().layer() == name;
}

// Whether the hidden units of an RBM are in use: a layer reads them, or the net trains nothing
// else.
bool has_used_units(const NetParameter& net, const LayerParameter& rbm) {
  if (rbm.type() != "RBM" || rbm.top_size() < 2) return false;
  bool alone = true;
  for (const LayerParameter& layer : net.layer()) {
    alone = alone && (layer.type() == "RBM" || is_source(layer) || !is_a_loss(layer));
    for (const std::string& bottom : layer.bottom()) {
      if (bottom == rbm.top(1)) return true;
    }
  }
  return alone;
}

DeployRole role_in(const NetParameter& net, const LayerParameter& layer) {
  const std::string& type = layer.type();
  const LayerFacts facts = facts_of(type);
  if (is_source(layer)) return is_made_up(net, layer) ? DeployRole::made_up : DeployRole::source;
  if (type == "Silence") return DeployRole::silence;
  const bool bypass = facts.in_use == InUse::bypassed || is_python(layer, "ProposalTargetLayer");
  if (bypass && layer.bottom_size() > 1 && layer.top_size() > 0) return DeployRole::bypass;
  if (facts.in_use == InUse::left_out || facts.kind == LayerKind::metric ||
      facts.kind == LayerKind::sink || is_python(layer, "AnchorTargetLayer"))
    return DeployRole::metric;
  return is_a_loss(layer) && !has_used_units(net, layer) ? DeployRole::loss : DeployRole::layer;
}

bool has_filler(const Descriptor* message) {
  for (int i = 0; i < message->field_count(); ++i) {
    if (message->field(i)->message_type() == FillerParameter::descriptor()) return true;
  }
  return false;
}

// Learned parameters have fillers, so the messages of such layers do.
bool has_parameters(const LayerParameter& layer) {
  if (layer.param_size() > 0 || layer.type() == "Parameter") return true;
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!layer.GetReflection()->HasField(layer, field) &&
        letters_of(field->name()) != letters_of(layer.type()))
      continue;
    if (has_filler(field->message_type())) return true;
  }
  return false;
}

}  // namespace

bool is_optional_label(const LayerParameter& layer, int bottom) {
  return layer.type() == "Decode" && bottom == 1;
}

DeployGraph::DeployGraph(const NetParameter& net, const std::function<std::string(int)>& where)
    : net(net) {
  connect(where);
  find_learned();
  const std::vector<bool> useful = find_useful();
  bool any = false;
  for (size_t i = 0; i < blobs.size(); ++i)
    any = any || (useful[i] && roles[blobs[i].producer] == DeployRole::source);
  // In that case generated values act as data.
  if (!any) std::replace(roles.begin(), roles.end(), DeployRole::made_up, DeployRole::source);
  find_gone(useful);
}

void DeployGraph::connect(const std::function<std::string(int)>& where) {
  std::map<std::string, int> latest;
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    roles.push_back(role_in(net, layer));
    learns.push_back(roles.back() == DeployRole::layer && has_parameters(layer));
    bottoms.emplace_back();
    tops.emplace_back();
    for (const std::string& name : layer.bottom()) {
      const auto at = latest.find(name);
      if (at == latest.end())
        fail(where(i), ": layer \"", layer.name(), "\": no layer above makes the bottom \"", name,
             "\" in the phase, level and stages to deploy from: choose those of its source");
      bottoms[i].push_back(at->second);
      if (roles[i] != DeployRole::bypass) blobs[at->second].readers.push_back(i);
    }
    for (int j = 0; j < layer.top_size(); ++j) {
      if (j == 0 && roles[i] == DeployRole::bypass) {
        tops[i].push_back(bottoms[i][0]);
      } else {
        tops[i].push_back(static_cast<int>(blobs.size()));
        DeployBlob blob;
        blob.name = layer.top(j);
        blob.producer = i;
        blob.top = j;
        blobs.push_back(blob);
      }
      latest[layer.top(j)] = tops[i].back();
    }
  }
}

void DeployGraph::find_learned() {
  const bool any = std::find(learns.begin(), learns.end(), true) != learns.end();
  bool rooted = any;  // in a net without parameters the first source takes their place
  for (int i = 0; i < net.layer_size(); ++i) {
    bool learned = learns[i];
    for (size_t j = 0; roles[i] == DeployRole::layer && j < bottoms[i].size(); ++j)
      learned |= blobs[bottoms[i][j]].learned;
    for (const int top : tops[i]) {
      if (roles[i] == DeployRole::layer) blobs[top].learned = learned;
      if (roles[i] == DeployRole::source && !rooted) rooted = blobs[top].learned = true;
    }
  }
}

// Blobs that lead to parameters, or to a result that comes from parameters.
std::vector<bool> DeployGraph::find_useful() const {
  std::vector<bool> useful(blobs.size());
  for (size_t i = 0; i < blobs.size(); ++i)
    useful[i] = blobs[i].learned && roles[blobs[i].producer] == DeployRole::source;
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    if (roles[i] != DeployRole::layer) continue;
    bool any = learns[i], unread = true, learned = false;
    for (const int top : tops[i]) {
      any = any || useful[top];
      if (is_silenced(top)) continue;
      unread &= std::all_of(blobs[top].readers.begin(), blobs[top].readers.end(), [&](int reader) {
        return net.layer(reader).type() == "DetectionEvaluate";
      });
      learned |= blobs[top].learned;
    }
    if (!any && !(unread && learned)) continue;
    for (int j = 0; j < static_cast<int>(bottoms[i].size()); ++j) {
      if (!is_optional_label(net.layer(i), j)) useful[bottoms[i][j]] = true;
    }
  }
  return useful;
}

void DeployGraph::find_gone(const std::vector<bool>& useful) {
  for (int i = 0; i < net.layer_size(); ++i) {
    const bool source = roles[i] == DeployRole::source || roles[i] == DeployRole::made_up;
    for (int j = 0; j < static_cast<int>(tops[i].size()); ++j) {
      if (roles[i] == DeployRole::bypass && j == 0) continue;
      blobs[tops[i][j]].gone = source ? !useful[tops[i][j]] : goes(i);
    }
  }
}

bool DeployGraph::is_silenced(int blob) const {
  const std::vector<int>& readers = blobs[blob].readers;
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
    return roles[reader] == DeployRole::silence;
  });
}

bool DeployGraph::goes(int layer) const {
  if (roles[layer] != DeployRole::layer)
    return roles[layer] != DeployRole::source && roles[layer] != DeployRole::made_up;
  for (int j = 0; j < static_cast<int>(bottoms[layer].size()); ++j) {
    if (blobs[bottoms[layer][j]].gone && !is_optional_label(net.layer(layer), j)) return true;
  }
  return false;
}

std::vector<bool> DeployGraph::followers(const std::vector<int>& from) const {
  std::vector<bool> found(blobs.size());
  for (const int blob : from) found[blob] = true;
  for (int i = 0; i < net.layer_size(); ++i) {
    if (roles[i] != DeployRole::layer || learns[i]) continue;
    const bool any = std::any_of(bottoms[i].begin(), bottoms[i].end(),
                                 [&](int bottom) { return found[bottom]; });
    for (const int top : tops[i]) found[top] = found[top] || any;
  }
  return found;
}

}  // namespace crema
