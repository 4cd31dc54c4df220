#include "tools/project/net_edits.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "net/graph/filter.h"
#include "net/prototxt/settings.h"
#include "proto/solver.pb.h"

namespace crema {

namespace {

std::set<int> layers_of(const NetText& net, Phase phase) {
  NetState none;
  std::vector<int> kept;
  filter_net(net.net(), net_state(phase, net.net(), none), silent_log(), &kept);
  return {kept.begin(), kept.end()};
}

// The last layer before number `before` that writes a blob.
int writer_of(const NetParameter& net, int before, const std::string& blob) {
  for (int i = before - 1; i >= 0; --i) {
    const auto& tops = net.layer(i).top();
    if (std::find(tops.begin(), tops.end(), blob) != tops.end()) return i;
  }
  return -1;
}

// The layer with parameters that makes the scores which layer number `loss` reads.
int scorer_of(const NetParameter& net, int loss) {
  int layer = loss;
  while (layer >= 0) {
    const std::string& type = net.layer(layer).type();
    if (type == "InnerProduct" || type == "Convolution") return layer;
    if (net.layer(layer).bottom_size() == 0) return -1;
    layer = writer_of(net, layer, net.layer(layer).bottom(0));
  }
  return -1;
}

// The value of a setting as a file has it: texts in quotes.
std::string value_in_file(const std::string& field, const std::string& value) {
  const google::protobuf::Descriptor* type = LayerParameter::descriptor();
  const google::protobuf::FieldDescriptor* last = nullptr;
  for (const std::string& name : split(field, '.')) {
    last = type ? type->FindFieldByName(name) : nullptr;
    type = last ? last->message_type() : nullptr;
  }
  const std::string text(trim(value));
  const bool is_text = last && last->type() == google::protobuf::FieldDescriptor::TYPE_STRING;
  const bool has_quotes = text.size() > 1 && (text.front() == '"' || text.front() == '\'');
  return is_text && !has_quotes ? quoted(text) : text;
}

}  // namespace

std::vector<int> data_layers(const NetText& net, const std::string& type, Phase phase) {
  std::vector<int> found;
  for (const int i : layers_of(net, phase)) {
    if (net.net().layer(i).type() == type) found.push_back(i);
  }
  return found;
}

void connect_databases(const DataSources& sources, NetText* net) {
  for (const Phase phase : {TRAIN, TEST}) {
    const std::vector<int> layers = data_layers(*net, "Data", phase);
    require(layers.size() == 1, "this net has ", layers.size(), " Data layers for ",
            Phase_Name(phase), "; `crema new` can give data to nets with one for each phase");
    const int layer = layers[0];
    const int64_t own = net->net().layer(layer).data_param().batch_size();
    const int64_t batch = phase == TRAIN ? sources.batch : std::min(own, sources.tests);
    net->set(layer, "data_param.source",
             quoted(phase == TRAIN ? sources.training : sources.testing));
    net->set(layer, "data_param.backend", "LMDB");
    net->set(layer, "data_param.batch_size", cat(batch));
    if (phase == TRAIN) net->set(layer, "data_param.shuffle", "true");
    // The model's own mean is that of other pictures.
    if (net->net().layer(layer).transform_param().has_mean_file())
      net->set(layer, "transform_param.mean_file", quoted(mean_file));
  }
}

void set_classes(int64_t classes, NetText* net) {
  int losses = 0;
  for (int i = 0; i < net->net().layer_size(); ++i) {
    if (net->net().layer(i).type() != "SoftmaxWithLoss") continue;
    ++losses;
    const int scorer = scorer_of(net->net(), i);
    require(scorer >= 0, "layer \"", net->net().layer(i).name(),
            "\" of this net reads no scores of a layer InnerProduct or Convolution");
    const bool product = net->net().layer(scorer).type() == "InnerProduct";
    net->set(scorer, product ? "inner_product_param.num_output" : "convolution_param.num_output",
             cat(classes));
  }
  require(losses > 0, "this net has no SoftmaxWithLoss, and so learns no classes");
  for (int i = net->net().layer_size() - 1; i >= 0; --i) {
    const LayerParameter& layer = net->net().layer(i);
    if (layer.type() == "Accuracy" && layer.accuracy_param().top_k() > classes) net->remove(i);
  }
}

void set_fields(const std::vector<std::string>& settings, NetText* net) {
  for (const std::string& setting : settings) {
    const size_t equal = setting.find('='), close = setting.find(']');
    std::string path(trim(setting.substr(0, equal)));
    const bool is_prefixed = starts_with(path, "net.");
    if (is_prefixed) path.erase(0, 4);
    const std::string root = path.substr(0, path.find_first_of(".["));
    const bool is_of_net = NetParameter::descriptor()->FindFieldByName(root) &&
                           (is_prefixed || !SolverParameter::descriptor()->FindFieldByName(root));
    if (!is_of_net) continue;
    require(
        starts_with(path, "layer[") && close < equal, "-set ", setting,
        ": `crema new` sets fields of layers, as in layer[conv1].convolution_param.pad=1; write "
        "other fields of nets into the project's net.prototxt");
    // Says what is wrong with the layer, the field or the value.
    NetParameter changed = net->net();
    Settings checked({setting});
    checked.apply(&changed);
    checked.require_used();
    const size_t begin = path.find('[') + 1, end = path.find(']');
    const std::string name = path.substr(begin, end - begin);
    require(
        end + 2 < path.size() && path.find('[', end) == path.npos, "-set ", setting,
        ": `crema new` sets fields with one value; write lists into the project's net.prototxt");
    const std::string field = path.substr(end + 2);
    for (int i = 0; i < net->net().layer_size(); ++i) {
      if (changed.layer(i).SerializeAsString() == net->net().layer(i).SerializeAsString()) continue;
      net->set(i, field, value_in_file(field, setting.substr(equal + 1)));
    }
  }
}

void remove_stages(NetText* net) {
  std::set<int> kept = layers_of(*net, TRAIN);
  kept.merge(layers_of(*net, TEST));
  for (int i = net->net().layer_size() - 1; i >= 0; --i) {
    if (kept.count(i) == 0) net->remove(i);
  }
}

}  // namespace crema
