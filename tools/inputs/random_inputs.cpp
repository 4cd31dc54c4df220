#include "tools/inputs/random_inputs.h"

#include <algorithm>

#include "layers/layer_facts.h"
#include "tools/inputs/random_boxes.h"

namespace crema {

namespace {

uint64_t hash_of(const std::string& name) {
  uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (const unsigned char c : name) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

// The number of classes if bottom `j` of this node expects labels; 0: it expects something else.
int64_t classes_at(const Graph& graph, const Node& node, size_t j) {
  const LayerParameter& message = node.message;
  const std::string& type = message.type();
  const Shape& scores = graph.values[node.bottoms[0]].shape;
  const LayerFacts facts = facts_of(type);
  const bool is_loss = facts.kind == LayerKind::loss;
  if (is_loss && facts.labels == LabelKind::answers) return j == 1 ? 2 : 0;
  const bool for_each_score = j == 1 &&
                              graph.values[node.bottoms[1]].shape.count() == scores.count() &&
                              scores.axes() > 1 && scores.count(1) > 1;
  if (type == "SoftmaxWithLoss" && for_each_score) return 2;  // soft labels
  // Rows that are picked.
  if (type == "BatchReindex" && j == 1) return scores.axes() > 0 ? scores[0] : 0;
  if (type == "Gather" && j == 1 && node.tops.size() == 1)
    return scores.axes() > 0 ? scores[scores.canonical_axis(message.gather_param().axis())] : 0;
  if (type == "Filter" && j + 1 == node.bottoms.size()) return 2;
  if (type == "ContrastiveLoss") return j == 2 ? 2 : 0;
  if (type == "DetectionLoss") return j == 1 ? message.detection_loss_param().cls_num() : 0;
  if (type == "OrdinalRegressionLoss") return j == 1 ? scores[1] / 2 + 1 : 0;
  if (type == "MalisLoss") return j == 0 ? 0 : j == 2 ? 8 : 2;  // links and steps are 0 or 1
  if (type == "Embed") return j == 0 ? message.embed_param().input_dim() : 0;
  if (type == "LSTMUnit") return j == 2 ? 2 : 0;
  if (facts.kind == LayerKind::recurrent) return j == 1 ? 2 : 0;
  if (type == "CtcLoss" || type == "WarpCTCLoss" || type == "CTCGreedyDecoder" ||
      type == "LabelsequenceAccuracy") {
    return j == 1 && node.bottoms.size() == 2 && scores.axes() >= 3 ? scores[2] : 0;
  }
  const bool reads_labels =
      facts.labels == LabelKind::scored || (is_loss && facts.labels == LabelKind::classes);
  if (j != 1 || !reads_labels || scores.axes() == 0) return 0;
  int axis = std::min(1, scores.axes() - 1);
  if (type == "Accuracy") axis = scores.canonical_axis(message.accuracy_param().axis());
  if (type == "SoftmaxWithLoss") axis = scores.canonical_axis(message.softmax_param().axis());
  if (type == "InfogainLoss") axis = scores.canonical_axis(message.infogain_loss_param().axis());
  return scores[axis];
}

// Whether top `k` has values of bottom `j`, only in other positions.
bool passes_on(const Node& node, size_t j, size_t k) {
  const std::string& type = node.message.type();
  const LayerFacts facts = facts_of(type);
  if (type == "Filter" || (type == "Gather" && node.tops.size() > 1)) return k == j;
  // Interp makes label maps smaller where its places are pixels.
  if (!facts.copies && type != "Interp") return false;
  return j == 0 || facts.kind == LayerKind::join;
}

}  // namespace

int64_t classes_of(const Graph& graph, int value) {
  int64_t classes = 0;
  const auto narrow = [&](int64_t found) {
    if (found > 0) classes = classes == 0 ? found : std::min(classes, found);
  };
  for (const Node& node : graph.nodes) {
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      if (node.bottoms[j] != value) continue;
      narrow(classes_at(graph, node, j));
      for (size_t k = 0; k < node.tops.size(); ++k) {
        if (passes_on(node, j, k)) narrow(classes_of(graph, node.tops[k]));
      }
    }
  }
  return classes;
}

std::vector<std::string> random_inputs_of(const Net& net) {
  std::vector<std::string> inputs;
  for (const Node& node : net.graph().nodes) {
    if (node.message.type() != "Input") continue;
    for (const int top : node.tops) {
      const Value& value = net.graph().values[top];
      inputs.push_back(cat(value.blob, " ", value.shape.brief()));
    }
  }
  return inputs;
}

void fill_random_inputs(Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (node.message.type() != "Input") continue;
    for (const int top : node.tops) {
      const std::string& blob = net.graph().values[top].blob;
      const int64_t classes = classes_of(net.graph(), top);
      const Random random = net.context().random(hash_of(blob));
      const std::vector<float> boxes = random_boxes(net.graph(), top, random);
      if (!boxes.empty()) {
        net.set_input(blob, boxes.data());
        continue;
      }
      std::vector<float> values(static_cast<size_t>(net.graph().values[top].shape.count()));
#pragma omp parallel for
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = classes > 0 ? static_cast<float>(random.word(i) % classes) : random.normal(i);
      }
      net.set_input(blob, values.data());
    }
  }
}

}  // namespace crema
