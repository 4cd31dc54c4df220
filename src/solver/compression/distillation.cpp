#include "solver/compression/distillation.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "layers/layer_facts.h"
#include "net/deploy/deploy.h"
#include "net/graph/filter.h"
#include "net/graph/silent_during.h"
#include "net/weights/net_weights.h"
#include "net/weights/weights.h"
#include "proto/layer.pb.h"
#include "proto/params/pointwise.pb.h"
#include "solver/fields/solver_nets.h"

namespace crema {
namespace {

const std::string kPrefix = "teacher/";

bool is_teachers(const std::string& layer) {
  return layer.compare(0, kPrefix.size(), kPrefix) == 0;
}

bool is_loss(const LayerParameter& layer) { return facts_of(layer.type()).kind == LayerKind::loss; }

// Bottom 0 of the first layer that computes a Softmax of scores; "" if there is none.
std::string scores_of(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer())
    if ((layer.type() == "Softmax" || facts_of(layer.type()).activation == "Softmax") &&
        layer.bottom_size() > 0)
      return layer.bottom(0);
  return "";
}

bool has_top(const NetParameter& net, const std::string& blob) {
  return std::any_of(net.layer().begin(), net.layer().end(), [&](const LayerParameter& layer) {
    return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
  });
}

std::vector<std::string> tops_of(const NetParameter& net) {
  std::vector<std::string> tops;
  for (const LayerParameter& layer : net.layer())
    tops.insert(tops.end(), layer.top().begin(), layer.top().end());
  return tops;
}

// Without the layers that none of these blobs depends on.
NetParameter needed_for(const std::set<std::string>& blobs, const NetParameter& net) {
  std::set<std::string> wanted = blobs;
  std::vector<const LayerParameter*> layers;
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    const LayerParameter& layer = net.layer(i);
    if (std::none_of(layer.top().begin(), layer.top().end(),
                     [&](const std::string& top) { return wanted.count(top) > 0; }))
      continue;
    wanted.insert(layer.bottom().begin(), layer.bottom().end());
    layers.push_back(&layer);
  }
  NetParameter needed;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) *needed.add_layer() = **layer;
  return needed;
}

// Multiplies what the layer adds to the loss.
void scale_loss(float factor, LayerParameter* layer) {
  if (layer->loss_weight_size() == 0) {
    if (!is_loss(*layer)) return;
    layer->add_loss_weight(1);
    for (int i = 1; i < layer->top_size(); ++i) layer->add_loss_weight(0);
  }
  for (float& weight : *layer->mutable_loss_weight()) weight *= factor;
}

// A layer that compares the two nets.
LayerParameter make_layer_of(const std::string& name, const std::string& type,
                             const std::vector<std::string>& bottoms) {
  LayerParameter layer;
  layer.set_name(name);
  layer.set_type(type);
  for (const std::string& bottom : bottoms) layer.add_bottom(bottom);
  layer.add_top(name);
  layer.set_stored(false);
  return layer;
}

}  // namespace

Distillation::Distillation(Context& context, const SolverFile& file)
    : context_(context), file_(file), p_(file.solver.teacher()) {
  const auto at = [&](const char* field) { return file.where(cat("teacher.", field)); };
  path_ = find_file(p_.net(), folder_of(file.path));
  const NetFile net = read_net_file(path_);
  NetState state;
  state.set_phase(TEST);
  std::vector<int> kept;
  const NetParameter filtered =
      filter_net(net.net, net_state(TEST, net.net, state), silent_log(), &kept);
  DeployOptions options;
  options.folder = folder_of(path_);
  options.where = [&](int layer) { return net.where(kept[layer]); };
  options.preparation = net.preparation;
  deployed_ = deploy(filtered, options, silent_log()).net;
  for (const LayerParameter& layer : deployed_.layer()) {
    if (layer.bottom_size() > 0) {
      *teacher_.add_layer() = layer;
      continue;
    }
    require(input_.empty() && layer.top_size() == 1, at("net"), ": the teacher ", path_,
            " has several inputs; expected one, as a classifier has");
    input_ = layer.top(0);
  }
}

void Distillation::add_to(NetFile* net, NetOptions* options) const {
  std::vector<int> kept;
  const NetParameter student =
      filter_net(net->net, options->state, silent_log(), &kept, options->where);
  const auto at = [&](const std::string& field) { return file_.where("teacher." + field); };
  const auto known = [&](const NetParameter& of, const std::string& blob, const std::string& field,
                         const char* whose) {
    require(has_top(of, blob), at(field), ": the ", whose, " has no blob \"", blob, "\"",
            did_you_mean(blob, tops_of(of)));
  };
  std::set<std::string> wanted;
  std::string scores = p_.scores(), own = p_.student_scores();
  if (p_.weight() > 0) {
    if (scores.empty()) scores = scores_of(teacher_);
    if (own.empty()) own = scores_of(student);
    require(!scores.empty(), at("net"),
            ": the teacher has no Softmax: name its blob of scores with scores: \"BLOB\"");
    require(
        !own.empty(), at("net"),
        ": the trained net has no SoftmaxWithLoss: name its blob of scores with student_scores: "
        "\"BLOB\", or set weight: 0");
    known(teacher_, scores, "scores", "teacher");
    known(student, own, "student_scores", "trained net");
    wanted.insert(scores);
  }
  for (int i = 0; i < p_.match_size(); ++i) {
    const std::string field = cat("match[", i, "].");
    known(teacher_, p_.match(i).teacher(), field + "teacher", "teacher");
    known(student, p_.match(i).student(), field + "student", "trained net");
    wanted.insert(p_.match(i).teacher());
  }
  require(!wanted.empty(), at("weight"),
          ": nothing is learned from the teacher: weight is 0, and there is no match");
  NetParameter made = student;
  made.clear_layer();
  std::vector<int> origins;
  const auto add = [&](const LayerParameter& layer, int origin) {
    *made.add_layer() = layer;
    origins.push_back(origin);
  };
  // The teacher reads its input before any layer of the trained net can change it in place.
  int i = 0;
  std::string input;
  for (; i < student.layer_size() && student.layer(i).bottom_size() == 0; ++i) {
    const LayerParameter& source = student.layer(i);
    for (const std::string& top : source.top())
      if (input.empty() || top == input_) input = top;
    add(source, i);
  }
  require(!input.empty(), net->path, ": teacher: the trained net begins with no source of data");
  const auto renamed = [&](const std::string& blob) {
    return blob == input_ ? input : kPrefix + blob;
  };
  const NetParameter needed = needed_for(wanted, teacher_);
  for (LayerParameter layer : needed.layer()) {
    layer.set_name(kPrefix + layer.name());
    for (std::string& bottom : *layer.mutable_bottom()) bottom = renamed(bottom);
    for (std::string& top : *layer.mutable_top()) top = renamed(top);
    for (ParamSpec& param : *layer.mutable_param())
      if (!param.name().empty()) param.set_name(kPrefix + param.name());
    layer.set_phase(TEST);
    layer.set_stored(false);
    add(layer, std::max(0, i - 1));
  }
  for (; i < student.layer_size(); ++i) {
    LayerParameter layer = student.layer(i);
    scale_loss(1 - p_.weight(), &layer);
    add(layer, i);
  }
  const int last = student.layer_size() - 1;
  if (p_.weight() > 0) {
    const auto soften = [&](const std::string& name, const std::string& blob) {
      LayerParameter layer = make_layer_of(name, "Power", {blob});
      layer.mutable_power_param()->set_scale(1 / p_.temperature());
      add(layer, last);
    };
    soften("teacher/softened", kPrefix + scores);
    soften("teacher/student_softened", own);
    add(make_layer_of("teacher/targets", "Softmax", {"teacher/softened"}), last);
    LayerParameter loss = make_layer_of("teacher/loss", "SoftmaxCrossEntropy2Loss",
                                        {"teacher/student_softened", "teacher/targets"});
    loss.add_loss_weight(p_.weight() * p_.temperature() * p_.temperature());
    add(loss, last);
  }
  for (int k = 0; k < p_.match_size(); ++k) {
    LayerParameter loss = make_layer_of(cat("teacher/match", k), "EuclideanLoss",
                                        {p_.match(k).student(), kPrefix + p_.match(k).teacher()});
    loss.add_loss_weight(p_.match(k).weight());
    add(loss, last);
  }
  net->net = std::move(made);
  for (int& origin : origins) origin = kept[origin];
  options->where = [where = options->where, origins](int layer) { return where(origins[layer]); };
  options->frozen = [frozen = options->frozen](const std::string& layer) {
    return is_teachers(layer) || (frozen && frozen(layer));
  };
}

void Distillation::load_weights(Net& net) const {
  NetOptions options;
  options.state.set_phase(TEST);
  options.forward_only = true;
  options.weights_follow = true;
  options.folder = folder_of(path_);
  const SilentDuring silent(context_);
  Net teacher(context_, deployed_, options);
  const std::string path = find_file(p_.weights(), folder_of(file_.path));
  const LoadReport report = crema::load_weights(teacher, path, {WeightsMode::match, false});
  for (const LoadedLayer& layer : report.layers)
    require(
        layer.outcome == LoadedLayer::Outcome::loaded, file_.where("teacher.weights"), ": ", path,
        " does not fit layer \"", layer.name, "\" of the teacher, ", path_, ": ",
        layer.outcome == LoadedLayer::Outcome::missing ? "it is not in the file" : layer.detail);
  const NetWeights weights = weights_of(teacher);
  std::map<std::string, size_t> next;
  for (const Parameter& parameter : net.parameters()) {
    if (!is_teachers(parameter.layer)) continue;
    const std::string layer = parameter.layer.substr(kPrefix.size());
    const auto blobs = weights.find(layer);
    const size_t number = next[layer]++;  // a layer may own only some of its parameters
    require(blobs != weights.end() && number < blobs->second.size(), file_.where("teacher.net"),
            ": layer \"", layer, "\" of the teacher, ", path_,
            ", shares weights with a layer that its scores do not need");
    const WeightBlob& blob = blobs->second[number];
    require(blob.shape == parameter.shape, file_.where("teacher.net"), ": layer \"", layer,
            "\" of the teacher, ", path_, ", has weights of ", blob.shape.brief(),
            ", but reads data for which they would be ", parameter.shape.brief(),
            ": the teacher must take what the trained net's data layer gives");
    from_floats(context_, blob.values.data(), parameter.data);
  }
  net.parameters_changed();
}

}  // namespace crema
