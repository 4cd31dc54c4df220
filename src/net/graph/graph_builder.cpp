#include "net/graph/graph_builder.h"

#include <algorithm>
#include <map>
#include <new>
#include <stdexcept>

#include "layers/divided_batch.h"
#include "layers/python_hook.h"
#include "layers/vision/pooling_window.h"
#include "net/graph/graph_parameters.h"
#include "net/graph/layer_error.h"
#include "net/graph/needs_backward.h"
#include "net/graph/net_slips.h"
#include "net/graph/python_choice.h"
#include "net/graph/shapes.h"
#include "net/graph/splits.h"
#include "net/sources/batch_size.h"
#include "net/sources/companions.h"

namespace crema {

void at_layer(const LayerPlace& place, const std::function<void()>& body) {
  const auto prefix = [&] {
    return cat(place.where, place.where.empty() ? "" : ": ", "layer \"", place.layer, "\": ");
  };
  try {
    body();
  } catch (const DeviceLost&) {
    throw;  // detected here, but possibly caused by an earlier layer
  } catch (const Error& error) {
    throw Error(prefix() + error.what());
  } catch (const std::bad_alloc&) {
    throw Error(prefix() + "out of memory");
  } catch (const std::length_error&) {  // a vector larger than any memory
    throw Error(prefix() + "out of memory");
  }
}

namespace {

class Builder {
 public:
  Builder(Context& context, const GraphOptions& options)
      : context_(context), options_(options), parameters_(context.log(), graph_) {}

  Graph build(const NetParameter& filtered) {
    const auto refuse = [&](const SplitFault& fault) {
      try {
        attempt(fault.layer, filtered.layer(fault.layer), [&] { fail(fault.text); });
      } catch (LayerError& error) {
        error.missing = fault.missing;
        error.has_data = fault.has_data;
        throw;
      }
    };
    graph_.net = insert_splits(filtered, &origin_, refuse, options_.why_missing);
    if (graph_.net.has_bn_stats_batch_size()) {
      for (LayerParameter& layer : *graph_.net.mutable_layer()) {
        if (layer.type() == "BatchNorm" && !layer.batch_norm_param().has_stats_batch_size())
          layer.mutable_batch_norm_param()->set_stats_batch_size(graph_.net.bn_stats_batch_size());
      }
    }
    divided_batch_ = divided_batch(graph_.net);
    for (const Companions& pair : find_companions(graph_.net))
      leader_.emplace(pair.second, pair.first);
    // No node is moved: that would swap its message field by field.
    graph_.nodes.reserve(static_cast<size_t>(graph_.net.layer_size()));
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      attempt(origin_[i], graph_.net.layer(i), [&] { add_layer(i); });
    }
    for (auto& [blob, value] : available_) {
      graph_.values[value].output = true;
      graph_.outputs.push_back(value);
      graph_.output_names.push_back(blob);
    }
    decide_gradients();
    for (const auto& [blob, value] : available_)
      context_.log().info(cat("This network produces output ", blob));
    context_.log().info("Network initialization done.");
    return std::move(graph_);
  }

 private:
  void attempt(int filtered_layer, const LayerParameter& layer, const std::function<void()>& body) {
    try {
      at_layer({layer.name(), ""}, body);
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      const std::string where = place_of(filtered_layer, layer.name()).where;
      throw LayerError(cat(where, where.empty() ? "" : ": ", error.what()), filtered_layer,
                       layer.name(), layer.type());
    }
  }

  LayerPlace place_of(int filtered_layer, const std::string& name) const {
    return {name, options_.where ? options_.where(filtered_layer) : std::string()};
  }

  void add_layer(int i) {
    const LayerParameter& message = graph_.net.layer(i);
    Log& log = context_.log();
    log.info(cat("Creating layer ", message.name()));
    require(message.propagate_down_size() == 0 ||
                message.propagate_down_size() == message.bottom_size(),
            "propagate_down is given ", message.propagate_down_size(), " times, but there are ",
            message.bottom_size(), " bottoms: give it once for each, or not at all");
    graph_.views.emplace_back();
    layers_.push_back(nullptr);
    if (message.type() == "Split" && all_tops_are_read(i)) return add_split(i);
    const bool training = message.has_phase() ? message.phase() == TRAIN : options_.training;
    std::shared_ptr<Layer> layer = make_layer(message, training, options_.folder);
    DataSource* const source = layer->source();
    if (source && options_.whole_epochs) source->read_whole_epochs();
    if (auto* const divided = dynamic_cast<DividedBatch*>(layer.get()))
      divided->set_divided_batch(divided_batch_);
    // Sources of one order, crop and mirror.
    if (const auto leader = leader_.find(i); leader != leader_.end())
      layer->share_rng_of(*layers_[leader->second]);
    if (source) source->open(context_);
    log.info(cat("Creating Layer ", message.name()));
    layers_.back() = layer.get();
    Node& node = graph_.nodes.emplace_back();
    node.layer = layer;
    node.message = message;
    node.members = {i};
    node.place = place_of(origin_[i], message.name());
    std::vector<Shape> bottoms;
    for (int j = 0; j < message.bottom_size(); ++j) {
      log.info(cat(message.name(), " <- ", message.bottom(j)));
      node.bottoms.push_back(take(message.bottom(j)));
      bottoms.push_back(graph_.values[node.bottoms.back()].shape);
    }
    std::vector<std::string> tops(message.top().begin(), message.top().end());
    for (int j = 0; j < message.top_size(); ++j) {
      const bool in_place = j < message.bottom_size() && message.bottom(j) == message.top(j);
      log.info(cat(message.name(), " -> ", message.top(j), in_place ? " (in-place)" : ""));
    }
    if (layer->is_loss() && tops.empty()) {
      log.info(cat(message.name(), " -> (automatic)"));
      tops.push_back("(automatic)");
    }
    check_arity(*layer, static_cast<int>(bottoms.size()), static_cast<int>(tops.size()));
    std::vector<std::string> blobs;
    for (const int value : node.bottoms) blobs.push_back(graph_.values[value].blob);
    const GivenBottoms given{message, blobs, bottoms, training, options_.folder};
    with_order_hint(context_, given, [&] {
      if (!set_up_layer(context_, node, bottoms, options_.folder)) return;
      layer = node.layer;
      layers_.back() = layer.get();
    });
    if (options_.frozen && options_.frozen(message.name())) freeze(i, *layer);
    // Caffe's SoftmaxWithLoss creates its Softmax through the factory, which also logs.
    if (message.type() == "SoftmaxWithLoss") log.info(cat("Creating layer ", message.name()));
    Inference inference;
    with_order_hint(context_, given, [&] { inference = layer->infer(bottoms); });
    check_tops(message, inference.tops);
    if (const std::string empty = empty_windows(*layer, bottoms); !empty.empty())
      log.warning(cat(node.place.where, node.place.where.empty() ? "" : ": ", "layer \"",
                      message.name(), "\": ", empty));
    log.info(cat("Setting up ", message.name()));
    add_tops(i, tops, inference.tops, &node);
    const size_t before = graph_.parameters.size();
    node.parameters = parameters_.add(message, *layer);
    if (options_.training && graph_.parameters.size() > before)
      warn_of_namesake(context_, graph_, node);
    graph_.views[i].bottoms = node.bottoms;
    graph_.views[i].tops = node.tops;
    graph_.views[i].parameters = node.parameters;
    node_of_.push_back(static_cast<int>(graph_.nodes.size()) - 1);
  }

  void freeze(int i, const Layer& layer) {
    LayerParameter* message = graph_.net.mutable_layer(i);
    while (message->param_size() < static_cast<int>(layer.parameters().size()))
      message->add_param();
    for (ParamSpec& param : *message->mutable_param()) param.set_lr_mult(0);
  }

  // Only then is a Split a mere alias: an output of the net needs its own gradient.
  bool all_tops_are_read(int i) const {
    for (const std::string& top : graph_.net.layer(i).top()) {
      bool read = false;
      for (int later = i + 1; later < graph_.net.layer_size() && !read; ++later) {
        const auto& bottoms = graph_.net.layer(later).bottom();
        read = std::find(bottoms.begin(), bottoms.end(), top) != bottoms.end();
      }
      if (!read) return false;
    }
    return true;
  }

  void add_split(int i) {
    const LayerParameter& message = graph_.net.layer(i);
    Log& log = context_.log();
    require(message.bottom_size() == 1 && message.top_size() >= 1,
            "a Split layer has one bottom and at least one top");
    log.info(cat("Creating Layer ", message.name()));
    log.info(cat(message.name(), " <- ", message.bottom(0)));
    const int value = take(message.bottom(0));
    for (const std::string& top : message.top()) log.info(cat(message.name(), " -> ", top));
    log.info(cat("Setting up ", message.name()));
    Graph::View& view = graph_.views[i];
    view.bottoms = {value};
    for (int j = 0; j < message.top_size(); ++j) {
      view.tops.push_back(value);
      latest_[message.top(j)] = value;
      available_[message.top(j)] = value;
      const float weight = j < message.loss_weight_size() ? message.loss_weight(j) : 0;
      log_top(graph_.values[value].shape, weight);
      if (weight != 0) graph_.values[value].loss_weight = weight;
    }
    log.info(cat("Memory required for data: ", memory_ * 4));
    node_of_.push_back(-1);
  }

  int take(const std::string& blob) {
    available_.erase(blob);
    return latest_.at(blob);
  }

  void check_arity(const Layer& layer, int bottoms, int tops) {
    check_count("bottom", layer.bottoms(), bottoms);
    check_count("top", layer.tops(), tops);
    require(!layer.as_many_tops_as_bottoms() || bottoms == tops, "type ", layer.type(),
            " makes one top for each bottom: ", bottoms, " bottoms, but ", tops, " tops are given");
  }

  void check_count(const char* what, Arity arity, int count) {
    const bool good = count >= arity.minimum && (arity.maximum < 0 || count <= arity.maximum);
    if (good) return;
    const std::string wanted = arity.maximum < 0 ? cat("at least ", arity.minimum)
                               : arity.minimum == arity.maximum
                                   ? cat(arity.minimum)
                                   : cat(arity.minimum, " to ", arity.maximum);
    const LayerParameter& message = graph_.net.layer(static_cast<int>(graph_.views.size()) - 1);
    fail("type ", message.type(), " takes ", wanted, " ", what,
         wanted == "1" || ends_with(wanted, " 1") ? "" : "s", ", but ", count,
         count == 1 ? " is given" : " are given", count < arity.minimum ? advice_on(what) : "");
  }

  // An example of a bottom or top that is missing.
  std::string advice_on(const std::string& what) const {
    const int at = static_cast<int>(graph_.views.size()) - 1;
    const LayerParameter& message = graph_.net.layer(at);
    if (what == "top")
      return cat("; name what it writes, for example top: \"",
                 message.name().empty() ? "out" : message.name(), '"');
    const bool reads_labels =
        message.bottom_size() == 1 && latest_.count("label") > 0 && message.bottom(0) != "label";
    std::string blob = reads_labels ? "label" : "";
    for (int i = 0; i < at && !reads_labels; ++i)
      if (graph_.net.layer(i).top_size() > 0 && graph_.net.layer(i).top(0) != "label")
        blob = graph_.net.layer(i).top(0);
    if (blob.empty()) blob = "data";
    return cat("; name what it reads, for example bottom: \"", blob, '"');
  }

  void log_top(const Shape& shape, float weight) {
    context_.log().info(cat("Top shape: ", shape.str()));
    if (weight != 0) context_.log().info(cat("    with loss weight ", weight));
    memory_ += shape.count();
  }

  void add_tops(int i, const std::vector<std::string>& names, const std::vector<Shape>& shapes,
                Node* node) {
    const LayerParameter& message = graph_.net.layer(i);
    require(message.loss_weight_size() == 0 ||
                message.loss_weight_size() == static_cast<int>(names.size()),
            "loss_weight is given ", message.loss_weight_size(), " times, but there are ",
            names.size(), " tops: give one for each top, or none");
    for (size_t j = 0; j < names.size(); ++j) {
      Value value;
      value.blob = names[j];
      value.shape = shapes[j];
      value.producer = static_cast<int>(graph_.nodes.size()) - 1;
      value.top = static_cast<int>(j);
      if (message.loss_weight_size() > 0) {
        value.loss_weight = message.loss_weight(static_cast<int>(j));
      } else if (j == 0 && node->layer->is_loss() && !split_carries_loss(i)) {
        value.loss_weight = 1;
      }
      const int id = static_cast<int>(graph_.values.size());
      graph_.values.push_back(value);
      node->tops.push_back(id);
      latest_[names[j]] = id;
      available_[names[j]] = id;
      log_top(value.shape, value.loss_weight);
    }
    context_.log().info(cat("Memory required for data: ", memory_ * 4));
  }

  // A loss that other layers read too has passed its weight on to its Split.
  bool split_carries_loss(int i) const {
    if (i + 1 >= graph_.net.layer_size()) return false;
    const LayerParameter& next = graph_.net.layer(i + 1);
    return next.type() == "Split" && origin_[i + 1] == origin_[i] && next.loss_weight_size() > 0;
  }

  void decide_gradients() {
    std::vector<std::vector<float>> weights;
    for (const Graph::View& view : graph_.views) {
      weights.emplace_back();
      for (int value : view.tops) weights.back().push_back(graph_.values[value].loss_weight);
    }
    const BackwardNeeds needs =
        find_backward_needs(graph_, layers_, weights, options_.seed_outputs);
    if (options_.training) refuse_swapped_losses(graph_, layers_, needs.wanted);
    for (int i = graph_.net.layer_size() - 1; i >= 0; --i) {
      graph_.views[i].backward = needs.layer[i];
      context_.log().info(cat(graph_.net.layer(i).name(),
                              needs.layer[i] ? " needs" : " does not need",
                              " backward computation."));
      if (node_of_[i] < 0) continue;
      Node& node = graph_.nodes[node_of_[i]];
      node.backward = needs.layer[i];
      node.propagate = needs.bottom[i];
      for (size_t j = 0; j < node.bottoms.size(); ++j) {
        if (node.backward && node.propagate[j]) graph_.values[node.bottoms[j]].needs_diff = true;
      }
    }
  }

  Context& context_;
  const GraphOptions& options_;
  Graph graph_;
  std::vector<int> origin_;           // of each layer of graph_.net: its index in the filtered net
  std::vector<const Layer*> layers_;  // null for Split
  int64_t divided_batch_ = 0;
  std::map<int, int> leader_;          // of a companion: the source whose random numbers it uses
  std::vector<int> node_of_;           // -1 for Split
  std::map<std::string, int> latest_;  // blob -> value
  std::map<std::string, int>
      available_;  // blobs that no layer has read yet: the outputs, by name as Caffe lists them
  GraphParameters parameters_;
  int64_t memory_ = 0;
};

}  // namespace

std::vector<SourceNode> sources_of(const Graph& graph) {
  std::vector<SourceNode> sources;
  for (const Node& node : graph.nodes) {
    if (DataSource* const source = node.layer->source()) sources.push_back({node, *source});
  }
  return sources;
}

Graph build_graph(Context& context, const NetParameter& filtered, const GraphOptions& options) {
  return Builder(context, options).build(filtered);
}

}  // namespace crema
