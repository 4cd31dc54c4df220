#include "net/deploy/deploy_results.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "layers/layer.h"
#include "tensor/shape.h"

namespace crema {

namespace {

float weight_of(const LayerParameter& loss) {
  for (const float weight : loss.loss_weight()) {
    if (weight != 0) return weight;
  }
  return loss.loss_weight_size() > 0 ? 0 : 1;
}

// The bottoms that a loss or metric judges, without the targets.
std::vector<int> predictions_of(const DeployGraph& graph, int layer) {
  const LayerParameter& message = graph.net.layer(layer);
  std::unique_ptr<Layer> loss;
  if (graph.roles[layer] == DeployRole::loss && LayerRegistry::find(message.type()))
    loss = make_layer(message, false);
  std::vector<int> found;
  for (int j = 0; j < message.bottom_size(); ++j) {
    const int blob = graph.bottoms[layer][j];
    if (!graph.blobs[blob].learned || graph.blobs[blob].gone) continue;
    if (!loss || !loss->is_loss() || loss->differentiable(j)) found.push_back(blob);
  }
  return found;
}

// Without a Dropout or a split of the batch that leads nowhere else.
int without_trailing(const DeployGraph& graph, int blob) {
  for (;;) {
    const int producer = graph.blobs[blob].producer;
    if (graph.roles[producer] != DeployRole::layer) return blob;
    const LayerParameter& layer = graph.net.layer(producer);
    const SliceParameter& slice = layer.slice_param();
    const bool of_batch =
        layer.type() == "Slice" &&
        (slice.has_slice_dim() ? slice.slice_dim() == 0 : slice.has_axis() && slice.axis() == 0);
    if (!of_batch && facts_of(layer.type()).kind != LayerKind::dropout) return blob;
    blob = graph.bottoms[producer][0];
  }
}

class ResultFinder {
 public:
  ResultFinder(const DeployGraph& graph, std::vector<std::string>* notes)
      : graph_(graph), notes_(*notes) {}

  std::vector<DeployResult> find() {
    judge_losses();
    const std::vector<bool> after_kept = graph_.followers(kept_);
    const std::vector<bool> after_dropped = graph_.followers(dropped_);
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (graph_.roles[i] == DeployRole::loss) {
        if (!auxiliary_.count(i)) add_loss(i);
        continue;
      }
      for (const int blob : read_by_none(i)) {
        const bool known = std::count(kept_.begin(), kept_.end(), blob) > 0;
        if (!known && (after_kept[blob] || !after_dropped[blob])) add({blob, -1, ""});
      }
    }
    leave_out_twins();
    return results_;
  }

 private:
  // Which losses are auxiliary, and the inputs of the others.
  void judge_losses() {
    using Kind = std::pair<std::string, std::vector<int>>;  // type, labels
    std::map<Kind, std::pair<float, int>> best;             // its weight and layer
    std::vector<Kind> kinds(graph_.net.layer_size());
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (graph_.roles[i] != DeployRole::loss) continue;
      // Other layers with a loss_weight are separate terms.
      const LayerParameter& message = graph_.net.layer(i);
      const bool is_loss = message.bottom_size() > 1;
      kinds[i].first = is_loss ? message.type() : message.name();
      for (const int blob : graph_.bottoms[i]) {
        if (!graph_.blobs[blob].learned || graph_.blobs[blob].gone) kinds[i].second.push_back(blob);
      }
      const float weight = weight_of(graph_.net.layer(i));
      const auto [at, first] = best.try_emplace(kinds[i], weight, i);
      if (!first && weight >= at->second.first) at->second = {weight, i};
    }
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (graph_.roles[i] != DeployRole::loss) continue;
      const auto [weight, main] = best.at(kinds[i]);
      const bool drop = weight_of(graph_.net.layer(i)) < weight;
      for (const int blob : predictions_of(graph_, i)) (drop ? dropped_ : kept_).push_back(blob);
      if (!drop) continue;
      auxiliary_.insert(i);
      notes_.push_back(cat("left out: what only the auxiliary loss ", graph_.net.layer(i).name(),
                           " needs, whose weight ", weight_of(graph_.net.layer(i)),
                           " is less than ", weight, " of ", graph_.net.layer(main).name()));
    }
  }

  void add_loss(int layer) {
    const std::vector<int> blobs = predictions_of(graph_, layer);
    const std::string activation(facts_of(graph_.net.layer(layer).type()).activation);
    for (const int blob : blobs) {
      if (activation.empty() || blob != graph_.bottoms[layer][0]) {
        add({without_trailing(graph_, blob), -1, ""});
      } else if (const int present = already(activation, blob); present >= 0) {
        add({present, -1, ""});
      } else {
        add({blob, layer, activation});
      }
    }
  }

  // The top of a layer of this type that reads the blob, or -1.
  int already(const std::string& type, int blob) const {
    for (const int reader : graph_.blobs[blob].readers) {
      if (graph_.net.layer(reader).type() == type && !graph_.goes(reader) &&
          !graph_.tops[reader].empty())
        return graph_.tops[reader][0];
    }
    return -1;
  }

  // What a removed layer reads, or writes for no other.
  std::vector<int> read_by_none(int layer) const {
    if (graph_.roles[layer] == DeployRole::silence || graph_.roles[layer] == DeployRole::bypass)
      return {};
    if (graph_.goes(layer)) return predictions_of(graph_, layer);
    std::vector<int> tops;
    for (const int top : graph_.tops[layer]) {
      if (graph_.net.layer(layer).type() == "RBM" && graph_.blobs[top].top == 0) continue;
      if (graph_.is_silenced(top)) continue;
      if (!graph_.blobs[top].readers.empty() || !graph_.blobs[top].learned) return {};
      tops.push_back(top);
    }
    return graph_.roles[layer] == DeployRole::layer ? tops : std::vector<int>();
  }

  void add(const DeployResult& result) {
    for (const DeployResult& other : results_) {
      if (other.blob == result.blob && other.activation == result.activation) return;
    }
    results_.push_back(result);
  }

  bool shares_parameters() const {
    std::set<std::string> names;
    for (const LayerParameter& layer : graph_.net.layer()) {
      for (const ParamSpec& param : layer.param()) {
        if (!param.name().empty() && !names.insert(param.name()).second) return true;
      }
    }
    return false;
  }

  // Keeps the first of the branches that share all parameters.
  void leave_out_twins() {
    if (!shares_parameters()) return;
    std::vector<DeployResult> all;
    std::swap(all, results_);
    for (const DeployResult& result : all) {
      const auto twin = std::find_if(results_.begin(), results_.end(), [&](const auto& other) {
        return are_twins(other.blob, result.blob);
      });
      if (twin == results_.end()) {
        results_.push_back(result);
      } else {
        notes_.push_back(cat("left out: the branch to ", graph_.blobs[result.blob].name,
                             ", which shares all parameters with the one to ",
                             graph_.blobs[twin->blob].name));
      }
    }
  }

  bool are_twins(int first, int second) const {
    const auto to_first = layers_before(graph_, {first}),
               to_second = layers_before(graph_, {second});
    std::set<std::string> shared;
    int count = 0;
    for (int i = 0; i < graph_.net.layer_size(); ++i) {
      if (!graph_.learns[i] || to_first[i] == to_second[i]) continue;
      const LayerParameter& layer = graph_.net.layer(i);
      if (to_second[i] && layer.param_size() == 0) return false;
      for (const ParamSpec& param : layer.param()) {
        if (to_first[i]) shared.insert(param.name());
        if (to_second[i] && (param.name().empty() || !shared.count(param.name()))) return false;
        count += to_second[i];
      }
    }
    return count > 0;
  }

  const DeployGraph& graph_;
  std::vector<std::string>& notes_;
  std::vector<int> kept_, dropped_;  // what losses read
  std::set<int> auxiliary_;
  std::vector<DeployResult> results_;
};

}  // namespace

std::vector<DeployResult> find_results(const DeployGraph& graph, std::vector<std::string>* notes) {
  return ResultFinder(graph, notes).find();
}

std::vector<bool> layers_before(const DeployGraph& graph, const std::vector<int>& blobs) {
  std::vector<bool> wanted(graph.blobs.size()), needed(graph.net.layer_size());
  for (const int blob : blobs) wanted[blob] = true;
  for (int i = graph.net.layer_size() - 1; i >= 0; --i) {
    if (graph.roles[i] == DeployRole::bypass) continue;
    needed[i] = std::any_of(graph.tops[i].begin(), graph.tops[i].end(),
                            [&](int top) { return wanted[top]; });
    for (int j = 0; needed[i] && j < graph.net.layer(i).bottom_size(); ++j) {
      if (!is_optional_label(graph.net.layer(i), j)) wanted[graph.bottoms[i][j]] = true;
    }
  }
  return needed;
}

}  // namespace crema
