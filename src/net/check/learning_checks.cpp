// Checks for mistakes that keep a net from learning, or make it learn something else, without an
// error.
#include <algorithm>
#include <cmath>

#include "layers/layer_facts.h"
#include "layers/norm/batch_norm_fields.h"
#include "net/check/checks.h"

namespace crema {
namespace {

bool is_rectifier(const LayerParameter& layer) {
  return layer.type() == "ReLU6" ||
         (layer.type() == "ReLU" && layer.relu_param().negative_slope() == 0);
}

// The effect of a layer in front of a loss that expects any numbers.
std::string harm_of(const LayerParameter& before, const std::string& loss) {
  const std::string& type = before.type();
  const LayerFacts facts = facts_of(type);
  const bool by_softmax = facts_of(loss).activation == "Softmax";
  const bool by_sigmoid = facts_of(loss).activation == "Sigmoid";
  if (!by_softmax && !by_sigmoid && loss != "HingeLoss") return "";
  if (type == "Softmax")
    return by_softmax ? cat(loss,
                            " has a softmax of its own, so this is a second one: its scores "
                            "are from 0 to 1 only, and it hardly learns")
                      : cat(loss, " expects scores of any size, not probabilities");
  if (type == "Sigmoid" && by_sigmoid)
    return cat(loss,
               " has a sigmoid of its own, so this is a second one: no probability is below "
               "0.5");
  if (is_rectifier(before)) return "no score is below 0, and those that are 0 get no gradient";
  if (facts.kind == LayerKind::activation && std::isfinite(facts.least) && facts.most <= 1)
    return cat(loss, " expects scores of any size, but these are squeezed between ", facts.least,
               " and ", facts.most, ", and it hardly learns");
  return "";
}

// The value of `bias_term` in the layer's parameters.
bool has_bias(const LayerParameter& layer) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  layer.GetReflection()->ListFields(layer, &set);
  for (const auto* field : set) {
    if (field->is_repeated() || !field->message_type()) continue;
    const google::protobuf::Message& params = layer.GetReflection()->GetMessage(layer, field);
    if (const auto* bias = field->message_type()->FindFieldByName("bias_term"))
      return params.GetReflection()->GetBool(params, bias);
  }
  return false;
}

// How many blobs a gradient can change; 0: none.
int learned_blobs(const LayerParameter& layer) {
  if (layer.type() == "BatchNorm" && learns_scale(layer.batch_norm_param()))
    return 5;  // after mean, variance and their number
  const int learned = facts_of(layer.type()).learned;
  return learned > 0 ? learned + has_bias(layer) : 0;
}

// Types without facts, and those that learn with some of their fields.
bool may_learn(const std::string& type) {
  const LayerKind kind = facts_of(type).kind;
  return kind == LayerKind::other || kind == LayerKind::norm;
}

bool is_frozen(const LayerParameter& layer) {
  const int blobs = learned_blobs(layer);
  if (layer.param_size() < blobs) return false;
  return std::all_of(layer.param().begin(), layer.param().begin() + blobs,
                     [](const ParamSpec& param) { return param.lr_mult() == 0; });
}

bool shares_weights(const LayerParameter& layer) {
  return std::any_of(layer.param().begin(), layer.param().end(),
                     [](const ParamSpec& param) { return !param.name().empty(); });
}

const FillerParameter* weight_filler_of(const CheckedNet& net, int i) {
  const std::string params = net.weight_params(i);
  if (params.empty()) return nullptr;
  return params == "convolution_param" ? &net.layer(i).convolution_param().weight_filler()
                                       : &net.layer(i).inner_product_param().weight_filler();
}

// A layer of another kind, such as Python or an unknown one, may be a loss.
bool ends_in_loss(const CheckedNet& net, int layer) {
  const LayerKind kind = facts_of(net.layer(layer).type()).kind;
  return net.is_loss(layer) || kind == LayerKind::loss || kind == LayerKind::other;
}

// Layers whose values a loss or a Silence layer depends on. Silence means that the author knows
// that they are unused.
std::vector<char> reach_of_losses(const CheckedNet& net) {
  std::vector<char> reached(net.layers());
  std::vector<int> open;
  for (int i = 0; i < net.layers(); ++i)
    if (ends_in_loss(net, i) || net.layer(i).type() == "Silence") open.push_back(i);
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    if (reached[i]) continue;
    reached[i] = 1;
    for (const std::string& bottom : net.layer(i).bottom()) {
      const int from = net.producer_of(i, bottom);
      if (from >= 0) open.push_back(from);
    }
  }
  return reached;
}

bool starts_at_zero(const CheckedNet& net, int i) {
  const FillerParameter* const filler = weight_filler_of(net, i);
  return filler && filler->type() == "constant" && filler->value() == 0 &&
         net.layer(i).blobs_size() == 0;
}

// Whether zeros stay zeros, with parameters as they start.
bool keeps_zeros(const std::string& type) {
  const LayerFacts facts = facts_of(type);
  switch (facts.kind) {
    case LayerKind::affine:
    case LayerKind::dropout:
    case LayerKind::norm:
    case LayerKind::pooling:
      return true;
    case LayerKind::activation:
      return facts.least < 0;  // one that has negative values changes its sign at 0
    default:
      return false;
  }
}

// Whether the weights of a layer whose outputs are 0 get no gradient: a ReLU passes none at 0, nor
// does a next layer whose weights are also 0.
bool gets_no_gradient(const CheckedNet& net, int layer) {
  if (net.layer(layer).top_size() == 0) return false;
  const std::vector<int> readers = net.readers_of(layer, net.layer(layer).top(0));
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
    const LayerParameter& next = net.layer(reader);
    return is_rectifier(next) || starts_at_zero(net, reader) ||
           (keeps_zeros(next.type()) && gets_no_gradient(net, reader));
  });
}

void check_before_losses(const CheckedNet& net, Findings* findings) {
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& loss = net.layer(i);
    if (!net.is_loss(i) || loss.bottom_size() < 2) continue;
    if (loss.bottom(0) == loss.bottom(1)) {
      add(findings, Severity::warning, net.where(i, "bottom"), "layer \"", loss.name(), "\" (",
          loss.type(), "): both bottoms are \"", loss.bottom(0),
          "\", so it compares a blob with itself and nothing is learned; name the labels as the "
          "second bottom");
      continue;
    }
    const int from = net.producer_of(i, loss.bottom(0));
    if (from < 0) continue;
    const LayerParameter& before = net.layer(from);
    if (loss.type() == "MultinomialLogisticLoss" && learned_blobs(before) > 0) {
      add(findings, Severity::warning, net.where(i, "type"), "layer \"", loss.name(),
          "\": MultinomialLogisticLoss expects probabilities, but \"", before.name(), "\" (",
          before.type(), ") gives scores: write type: \"SoftmaxWithLoss\"");
    }
    if (const std::string harm = harm_of(before, loss.type()); !harm.empty()) {
      add(findings, Severity::warning, net.where(from, "type"), "layer \"", before.name(), "\" (",
          before.type(), ") is right in front of \"", loss.name(), "\" (", loss.type(), "): ", harm,
          "; give the loss \"", before.bottom_size() > 0 ? before.bottom(0) : "",
          before.bottom_size() > 0 && before.top_size() > 0 && before.bottom(0) == before.top(0)
              ? "\" without this layer"
              : "\" instead");
    }
    const int scores = net.scores_of(i, loss.bottom(0));
    if (loss.type() == "SoftmaxWithLoss" && loss.softmax_param().axis() == 1 && scores >= 0 &&
        net.num_output(scores) == 1) {
      add(findings, Severity::warning, net.where(scores, net.weight_params(scores) + ".num_output"),
          "layer \"", net.layer(scores).name(),
          "\": num_output is 1, but a softmax over one score "
          "is always 1 and the loss of \"",
          loss.name(),
          "\" always 0; for a yes or no write "
          "num_output: 2, or SigmoidCrossEntropyLoss");
    }
  }
}

void check_fillers(const CheckedNet& net, Findings* findings) {
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    const FillerParameter* const filler = weight_filler_of(net, i);
    if (!filler || layer.blobs_size() > 0 || shares_weights(layer) || layer.top_size() == 0)
      continue;
    const std::string where = net.where(i, net.weight_params(i) + ".weight_filler");
    const bool frozen = is_frozen(layer);
    if (starts_at_zero(net, i) && !frozen && gets_no_gradient(net, i)) {
      add(findings, Severity::warning, where, "layer \"", layer.name(),
          "\": its weights start as 0",
          filler->has_type() ? "" : ", since weight_filler is missing",
          ", and with outputs of 0 it gets no gradient: it never learns; write weight_filler { "
          "type: "
          "\"xavier\" }, or \"msra\" in front of a ReLU");
    }
    // An explicit std: 1 may be meant, as in models/articles/two_layers.
    if (filler->type() == "gaussian" && (!filler->has_std() || filler->std() > 1) &&
        filler->sparse() < 0 && !frozen) {
      add(findings, Severity::warning, where, "layer \"", layer.name(),
          "\": weights begin with a standard deviation of ", filler->std(),
          filler->has_std() ? "" : ", the default of std",
          ", with which values grow from layer to layer; write std: 0.01, or type: \"xavier\"");
    }
    if (filler->type() == "uniform" && !filler->has_min() && !filler->has_max() && !frozen) {
      add(findings, Severity::warning, where, "layer \"", layer.name(),
          "\": uniform without min and max draws all weights from 0 to 1, so none is negative; "
          "write type: \"xavier\", or min and max");
    }
  }
}

void check_reach(const CheckedNet& net, Findings* findings) {
  const std::vector<char> reached = reach_of_losses(net);
  int learned = 0, frozen = 0, losses = 0;
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    losses += net.is_loss(i);
    if (learned_blobs(layer) == 0) continue;
    ++learned;
    frozen += is_frozen(layer);
  }
  if (losses == 0 || learned == 0) return;
  if (frozen == learned) {
    add(findings, Severity::warning, net.where(0, ""), "lr_mult is 0 for all weights of the ",
        learned,
        " layers that have some: nothing is learned; leave lr_mult out where a layer is "
        "to learn");
    return;
  }
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (reached[i] || learned_blobs(layer) == 0 || is_frozen(layer) || layer.top_size() == 0 ||
        shares_weights(layer))
      continue;
    const bool read =
        std::any_of(layer.top().begin(), layer.top().end(),
                    [&](const std::string& top) { return !net.readers_of(i, top).empty(); });
    if (!read) continue;  // check_unread() says so
    add(findings, Severity::warning, net.where(i, ""), "layer \"", layer.name(), "\" (",
        layer.type(),
        "): no loss depends on it, so its weights keep their initial values; "
        "connect it with a loss, or write lr_mult: 0 where that is meant");
  }
  // A loss of numbers that no weight has a part in.
  for (int i = 0; i < net.layers(); ++i) {
    if (!net.is_loss(i) || net.layer(i).bottom_size() == 0) continue;
    std::vector<char> seen(net.layers());
    std::vector<int> open = {i};
    bool learns = learned_blobs(net.layer(i)) > 0;
    bool known = true;  // whether the layers in front of it have weights
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (const std::string& bottom : net.layer(at).bottom()) {
        const int from = net.producer_of(at, bottom);
        if (from < 0 || seen[from]) continue;
        seen[from] = 1;
        open.push_back(from);
        if (learned_blobs(net.layer(from)) > 0) {
          learns = true;
        } else if (may_learn(net.layer(from).type())) {
          known = false;
        }
      }
    }
    if (learns || !known || facts_of(net.layer(i).type()).kind != LayerKind::loss) continue;
    add(findings, Severity::warning, net.where(i, "bottom"), "layer \"", net.layer(i).name(),
        "\" (", net.layer(i).type(),
        "): no layer with weights is in front of it, so nothing is "
        "learned from it; name the last layer's top as its first bottom");
  }
}

void check_accuracy(const CheckedNet& net, Findings* findings) {
  std::vector<int> compared;  // layers whose scores a loss reads
  for (int i = 0; i < net.layers(); ++i) {
    if (!net.is_loss(i) || net.layer(i).bottom_size() == 0) continue;
    compared.push_back(net.scores_of(i, net.layer(i).bottom(0)));
  }
  const bool all_known = !compared.empty() && std::all_of(compared.begin(), compared.end(),
                                                          [](int s) { return s >= 0; });
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (layer.type() != "Accuracy" || layer.bottom_size() < 2) continue;
    const int scores = net.scores_of(i, layer.bottom(0));
    if (scores < 0) continue;
    const int64_t classes = net.num_output(scores);
    if (layer.accuracy_param().axis() == 1 && classes > 1 &&
        layer.accuracy_param().top_k() >= classes) {
      add(findings, Severity::warning, net.where(i, "accuracy_param.top_k"), "layer \"",
          layer.name(), "\": top_k is ", layer.accuracy_param().top_k(), ", but there are ",
          classes, " classes, so it is always 1");
    }
    if (!all_known || std::count(compared.begin(), compared.end(), scores) > 0) continue;
    add(findings, Severity::warning, net.where(i, "bottom"), "layer \"", layer.name(),
        "\" measures the scores of \"", net.layer(scores).name(),
        "\", but no loss learns from "
        "those: the losses read those of \"",
        net.layer(compared.back()).name(), "\"; give both the same bottom");
  }
}

}  // namespace

void check_learning(const CheckedNet& net, bool has_weights, Findings* findings) {
  check_accuracy(net, findings);
  if (!net.training()) return;
  check_before_losses(net, findings);
  check_reach(net, findings);
  if (!has_weights) check_fillers(net, findings);
}

}  // namespace crema
