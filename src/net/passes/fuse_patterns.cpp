#include "net/passes/fuse_patterns.h"

#include "layers/norm/batch_norm_fields.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

float slope_of(const FuseMatch& match) {
  return match.node("ReLU").message.relu_param().negative_slope();
}

// The sign of y tells that of x.
bool keeps_signs(const FuseMatch& match) { return slope_of(match) >= 0; }

bool needs_no_gradient(const FuseMatch& match) { return !match.plan.options.backward; }

bool has_no_slope(const FuseMatch& match) { return slope_of(match) == 0; }

bool needs_no_gradient_no_slope(const FuseMatch& match) {
  return needs_no_gradient(match) && has_no_slope(match);
}

// The weights of an InnerProduct may be a bottom; those of fused layers are parameters.
bool owns_weights(const FuseMatch& match) { return match.node("InnerProduct").bottoms.size() == 1; }

bool owns_weights_keeps_signs(const FuseMatch& match) {
  return owns_weights(match) && keeps_signs(match);
}

bool scores_classes(const FuseMatch& match) {
  const PlanNode &scores = match.node("InnerProduct"), &loss = match.node("SoftmaxWithLoss");
  return owns_weights(match) && loss.bottoms.size() == 2 && loss.bottoms[0] == scores.tops[0];
}

// A fork's BatchNorm with its own factors.
bool scales_itself(const FuseMatch& match) {
  return learns_scale(match.node("BatchNorm").message.batch_norm_param()) && has_no_slope(match);
}

// One factor per channel, from a Scale.
bool scales_channels(const FuseMatch& match) {
  const PlanNode& scale = match.node("Scale");
  const ScaleParameter& p = scale.message.scale_param();
  const int axes = match.plan.values[scale.bottoms[0]].shape.axes();
  return !learns_scale(match.node("BatchNorm").message.batch_norm_param()) &&
         scale.bottoms.size() == 1 && p.num_axes() == 1 && axes >= 2 && !p.has_min_value() &&
         !p.has_max_value() && (p.axis() == 1 || p.axis() == 1 - axes);
}

bool scales_channels_no_slope(const FuseMatch& match) {
  return scales_channels(match) && has_no_slope(match);
}

// Both branches alike, so that one kernel has one set of settings.
bool is_pair(const FuseMatch& match) {
  const auto message = [&](size_t k) -> const LayerParameter& {
    return match.plan.nodes[match.nodes[k]].message;
  };
  const auto same = [](const auto& a, const auto& b) {
    return a.SerializeAsString() == b.SerializeAsString();
  };
  return scales_channels_no_slope(match) &&
         scales_channels({match.plan, {match.nodes[2], match.nodes[3]}}) &&
         same(message(0).batch_norm_param(), message(2).batch_norm_param()) &&
         same(message(1).scale_param(), message(3).scale_param());
}

}  // namespace

const std::vector<FusePattern>& fuse_patterns() {
  static const std::vector<FusePattern> patterns = {
      {"Convolution+ReLU+Pooling+Dropout", "", has_no_slope},
      {"Convolution+ReLU+Pooling", "", has_no_slope},
      {"Convolution+Pooling+Dropout"},
      {"Convolution+Pooling"},
      {"Convolution+Sum+ReLU", "", needs_no_gradient_no_slope},
      {"Convolution+Sum", "", needs_no_gradient},
      {"Convolution+ReLU", "", keeps_signs},
      {"ConvolutionDepthwise+ReLU", "", keeps_signs},
      {"DepthwiseConvolution+ReLU", "", keeps_signs},
      {"InnerProduct+ReLU+Dropout", "", owns_weights_keeps_signs},
      {"InnerProduct+ReLU", "", owns_weights_keeps_signs},
      {"InnerProduct+SoftmaxWithLoss", "", scores_classes},
      {"Pooling+ReLU", "", keeps_signs},
      {"BatchNorm+Scale+Sum+ReLU", "BatchNorm+Scale", is_pair},
      {"BatchNorm+Scale+Sum+ReLU", "", scales_channels_no_slope},
      {"BatchNorm+Scale+ReLU+Pooling", "", scales_channels_no_slope},
      {"BatchNorm+Scale+ReLU", "", scales_channels_no_slope},
      {"BatchNorm+Scale+GELU", "", scales_channels},
      {"BatchNorm+Scale", "", scales_channels},
      {"BatchNorm+Sum+ReLU", "", scales_itself},
      {"BatchNorm+ReLU+Pooling", "", scales_itself},
      {"BatchNorm+ReLU", "", scales_itself},
      {"BN+Sum+ReLU", "", has_no_slope},
      {"BN+ReLU+Pooling", "", has_no_slope},
      {"BN+ReLU", "", has_no_slope},
  };
  return patterns;
}

std::string FusePattern::type() const {
  if (branch.empty()) return path;
  const size_t sum = path.find("+Sum");
  return cat(path.substr(0, sum), "+", branch, path.substr(sum));
}

const PlanNode& FuseMatch::node(const char* type) const {
  for (int node : nodes) {
    if (matches_word(type, plan.nodes[node])) return plan.nodes[node];
  }
  fail("a fuse pattern has no ", type);
}

bool matches_word(const std::string& word, const PlanNode& node) {
  if (word != "Sum") return node.message.type() == word;
  const EltwiseParameter& p = node.message.eltwise_param();
  return node.message.type() == "Eltwise" && node.bottoms.size() == 2 &&
         node.bottoms[0] != node.bottoms[1] && p.operation() == EltwiseParameter::SUM &&
         p.coeff_size() == 0;
}

}  // namespace crema
