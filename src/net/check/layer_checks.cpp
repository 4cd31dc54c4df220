// Checks of single layers and their neighbours.
#include <algorithm>

#include "layers/layer_facts.h"
#include "layers/norm/batch_norm_fields.h"
#include "net/check/checks.h"

namespace crema {
namespace {

// Layers that are in a net for what follows them, not for a person who looks at their tops.
bool only_computes(const std::string& type) {
  const LayerFacts facts = facts_of(type);
  switch (facts.kind) {
    case LayerKind::convolution:
    case LayerKind::dense:
    case LayerKind::embedding:
    case LayerKind::attention:
    case LayerKind::recurrent:
    case LayerKind::affine:
    case LayerKind::dropout:
    case LayerKind::norm:
    case LayerKind::pooling:
    case LayerKind::join:
      return true;
    case LayerKind::activation:
      return facts.most > 1;  // others give probabilities, codes, answers
    default:
      return false;
  }
}

// The layer's loss is a sum that is not divided by the number of its terms.
bool is_sum(const CheckedNet& net, int layer) {
  const LayerParameter& message = net.layer(layer);
  if (!message.has_loss_param() || !net.is_loss(layer)) return false;
  // A small weight divides it, too.
  if (message.loss_weight_size() > 0 && message.loss_weight(0) < 0.1) return false;
  const LossParameter& loss = message.loss_param();
  if (loss.has_normalization()) return loss.normalization() == LossParameter::NONE;
  // Divided by the batch only: a sum over positions, if the scores come from a convolution.
  if (!loss.has_normalize() || loss.normalize() || message.bottom_size() == 0) return false;
  const int from = net.producer_of(layer, message.bottom(0));
  const LayerKind kind = from < 0 ? LayerKind::other : facts_of(net.layer(from).type()).kind;
  return kind == LayerKind::convolution || kind == LayerKind::resize;
}

}  // namespace

void check_has_loss(const CheckedNet& net, Findings* findings) {
  if (!net.training() || net.layers() == 0) return;
  bool has_data = false;
  std::string scores;
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (net.is_loss(i)) return;
    has_data |= facts_of(layer.type()).kind == LayerKind::source && layer.type() != "Input";
    if (net.num_output(i) > 0 && layer.top_size() > 0) scores = layer.top(0);
  }
  if (!has_data || scores.empty()) return;
  add(findings, Severity::warning, net.where(net.layers() - 1, ""),
      "no layer of the training net is a loss, or has a loss_weight: nothing will be learned; "
      "for classes add layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"",
      scores, "\" bottom: \"label\" top: \"loss\" }");
}

void check_unread(const CheckedNet& net, Findings* findings) {
  if (!net.training()) return;
  bool learns = false;
  for (int i = 0; i < net.layers(); ++i) learns |= net.is_loss(i);
  if (!learns) return;  // the solver says so
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (!only_computes(layer.type()) || net.is_loss(i) || layer.top_size() == 0) continue;
    const bool read =
        std::any_of(layer.top().begin(), layer.top().end(),
                    [&](const std::string& top) { return !net.readers_of(i, top).empty(); });
    if (read) continue;
    add(findings, Severity::warning, net.where(i, "top"), "layer \"", layer.name(), "\" (",
        layer.type(), "): nothing reads \"", layer.top(0),
        "\", so no loss depends on it, and it is computed in every iteration for nothing: name it "
        "as bottom of the layer it is meant for, or remove this layer");
  }
}

void check_global_stats(const CheckedNet& net, bool has_weights, Findings* findings) {
  if (!net.training() || has_weights) return;
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (layer.type() != "BatchNorm" || !layer.batch_norm_param().use_global_stats() ||
        layer.blobs_size() > 0)
      continue;
    add(findings, Severity::warning, net.where(i, "batch_norm_param.use_global_stats"), "layer \"",
        layer.name(),
        "\": use_global_stats is true in a training without weights to start from: mean and "
        "variance stay 0 and nothing is normalised; leave it out, as it is false in training and "
        "true in tests by itself, or give -weights");
  }
}

void check_batch_norm(const CheckedNet& net, Findings* findings) {
  if (!net.training()) return;
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (layer.type() != "BatchNorm" || learns_scale(layer.batch_norm_param()) ||
        layer.top_size() != 1)
      continue;
    const std::vector<int> readers = net.readers_of(i, layer.top(0));
    const bool activated =
        !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int r) {
          return facts_of(net.layer(r).type()).kind == LayerKind::activation;
        });
    if (!activated) continue;
    add(findings, Severity::info, net.where(i, ""), "layer \"", layer.name(),
        "\": BatchNorm only normalises, and \"", net.layer(readers[0]).name(), "\" (",
        net.layer(readers[0]).type(),
        ") follows at once: most nets learn better with a factor and a shift between them, layer { "
        "type: \"Scale\" scale_param { bias_term: true } }");
  }
}

bool sums_losses(const CheckedNet& net) {
  for (int i = 0; i < net.layers(); ++i) {
    if (is_sum(net, i)) return true;
  }
  return false;
}

void check_loss_sum(const CheckedNet& net, double rate, Findings* findings) {
  constexpr double kTiny = 1e-6;  // chosen for a sum
  if (!net.training() || rate <= kTiny) return;
  for (int i = 0; i < net.layers(); ++i) {
    if (!is_sum(net, i)) continue;
    const bool by_mode = net.layer(i).loss_param().has_normalization();
    const char* const field = by_mode ? "normalization" : "normalize";
    add(findings, Severity::warning, net.where(i, cat("loss_param.", field)), "layer \"",
        net.layer(i).name(), "\": with ", field, by_mode ? ": NONE" : ": false",
        " the loss is a sum over ", by_mode ? "the batch" : "all places of an image",
        ", and the gradient as much larger, but base_lr is ", rate,
        ": leave the field out, or lower base_lr to 1e-6 and less");
  }
}

}  // namespace crema
