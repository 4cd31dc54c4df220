// Checks of restricted Boltzmann machines, by Hinton's practical guide to training them (2010).
#include <cmath>

#include "layers/layer_facts.h"
#include "net/check/checks.h"
#include "net/check/moments.h"

namespace crema {
namespace {

bool is_binary(const LayerParameter& layer) {
  return layer.rbm_param().visible() == RBMParameter::BINARY;
}

double loss_weight_of(const LayerParameter& layer) {
  return layer.loss_weight_size() > 0 ? std::abs(double{layer.loss_weight(0)}) : 1;
}

double lr_mult_of(const LayerParameter& layer, int blob) {
  return blob < layer.param_size() ? double{layer.param(blob).lr_mult()} : 1;
}

// Why a layer's values are not from 0 to 1; "" if they may be.
std::string leaves_unit_range(const LayerParameter& before) {
  const LayerFacts facts = facts_of(before.type());
  if (facts.kind == LayerKind::convolution || facts.kind == LayerKind::dense)
    return "any numbers; put a Sigmoid between them";
  if (facts.centres || (std::isfinite(facts.least) && facts.least < 0))
    return "negative numbers, too; write visible: GAUSSIAN";
  if (before.type() == "RBM" && before.rbm_param().hidden() == RBMParameter::GAUSSIAN)
    return "any numbers, since its hidden units are GAUSSIAN; write visible: GAUSSIAN";
  return "";
}

void check_bottom(const CheckedNet& net, int layer, Findings* findings) {
  const LayerParameter& rbm = net.layer(layer);
  if (!is_binary(rbm) || rbm.bottom_size() == 0) return;
  const int from = net.producer_of(layer, rbm.bottom(0));
  if (from < 0) return;
  const LayerParameter& before = net.layer(from);
  const std::string why = leaves_unit_range(before);
  if (why.empty()) return;
  add(findings, Severity::warning, net.where(layer, "bottom"), "layer \"", rbm.name(),
      "\": its visible units are BINARY and take values from 0 to 1, but \"", before.name(), "\" (",
      before.type(), ") gives ", why);
}

void check_gaussian_rate(const CheckedNet& net, int layer, double rate, Findings* findings) {
  constexpr double kHigh =
      0.01;  // binary units take 0.1, Gaussian ones a tenth to a hundredth of it
  const LayerParameter& rbm = net.layer(layer);
  const bool visible = !is_binary(rbm);
  const bool hidden = rbm.rbm_param().hidden() == RBMParameter::GAUSSIAN;
  const double weight = loss_weight_of(rbm), mult = lr_mult_of(rbm, 0);
  if ((!visible && !hidden) || rate * weight * mult <= kHigh * (1 + 1e-6)) return;
  add(findings, Severity::warning, net.where(layer, "rbm_param"), "layer \"", rbm.name(),
      "\": ", visible ? "visible" : "hidden",
      " units are GAUSSIAN, but the rate of its weights is ",
      static_cast<float>(rate * weight * mult), " (base_lr ", rate,
      weight * mult == 1 ? "" : ", times lr_mult and loss_weight",
      "): nothing limits what such units take on, and the weights grow without end; write a "
      "base_lr "
      "of 0.001 to 0.01");
}

void check_bias_decay(const CheckedNet& net, int layer, double decay, Findings* findings) {
  const LayerParameter& rbm = net.layer(layer);
  if (decay <= 0) return;
  for (int blob = 1; blob <= 2; ++blob) {
    const bool decays = blob >= rbm.param_size() || rbm.param(blob).decay_mult() != 0;
    if (!decays || lr_mult_of(rbm, blob) == 0) continue;
    add(findings, Severity::info, net.where(layer, ""), "layer \"", rbm.name(),
        "\": weight_decay pulls its biases to 0, too, which keeps units from taking on how often "
        "they are on; write param { } param { decay_mult: 0 } param { decay_mult: 0 }");
    return;
  }
}

void check_equal_units(const CheckedNet& net, int layer, Findings* findings) {
  const LayerParameter& rbm = net.layer(layer);
  const RBMParameter& p = rbm.rbm_param();
  const auto equal = [](bool given, const FillerParameter& filler) {
    return given && filler.type() == "constant";
  };
  if (p.sampling() != RBMParameter::NONE || p.num_output() < 2 || rbm.blobs_size() > 0 ||
      lr_mult_of(rbm, 0) == 0 || !equal(p.has_weight_filler(), p.weight_filler()) ||
      (p.has_bias_filler() && p.bias_filler().type() != "constant"))
    return;
  add(findings, Severity::warning, net.where(layer, "rbm_param.weight_filler"), "layer \"",
      rbm.name(),
      "\": its hidden units begin with equal weights and, without sampling, stay equal; leave "
      "weight_filler out, which is gaussian with std: 0.01");
}

}  // namespace

void check_rbm(const CheckedNet& net, double rate, double decay, bool has_weights,
               Findings* findings) {
  if (!net.training()) return;
  for (int i = 0; i < net.layers(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (layer.type() != "RBM" || loss_weight_of(layer) == 0) continue;
    check_bottom(net, i, findings);
    check_gaussian_rate(net, i, rate, findings);
    check_bias_decay(net, i, decay, findings);
    if (!has_weights) check_equal_units(net, i, findings);
  }
}

void check_rbm_data(const CheckedNet& net, int layer, const SourceFacts& facts,
                    Findings* findings) {
  const LayerParameter& source = net.layer(layer);
  const TransformationParameter& transform = source.transform_param();
  const int means = transform.mean_value_size();
  if (!net.training() || facts.values.empty() || transform.has_mean_file() ||
      source.top_size() == 0 || (means > 1 && means != static_cast<int>(facts.values.size())))
    return;
  const Moments moments = moments_of(facts.values, transform);
  const std::string what = cat("\"", source.name(), "\" are ", static_cast<float>(moments.average),
                               " on average, with a standard deviation of ",
                               static_cast<float>(moments.deviation), ", after transform_param");
  for (const int reader : net.readers_of(layer, source.top(0))) {
    const LayerParameter& rbm = net.layer(reader);
    if (rbm.type() != "RBM") continue;
    // No square of a number from 0 to 1 is larger than the number.
    if (is_binary(rbm) && moments.square() > moments.average + 0.002) {
      const bool bytes = transform.scale() == 1 && moments.stored_mean > 1;
      add(findings, Severity::error, net.where(reader, "bottom"), "layer \"", rbm.name(),
          "\": its visible units are BINARY and take values from 0 to 1, but those of ", what,
          "; write ",
          bytes ? "transform_param { scale: 0.00392156862745098 } for bytes"
                : "transform_param so that they are from 0 to 1",
          ", or visible: GAUSSIAN");
    }
    if (!is_binary(rbm) &&
        (std::abs(moments.mean) > 1 || moments.deviation < 0.5 || moments.deviation > 2)) {
      add(findings, Severity::warning, net.where(reader, "rbm_param.visible"), "layer \"",
          rbm.name(),
          "\": GAUSSIAN units have a variance of 1 around their mean, but the values of ", what,
          "; put a layer of type \"MVN\" in front of it, or write mean_value and scale with "
          "which mean and deviation are 0 and 1");
    }
  }
}

}  // namespace crema
