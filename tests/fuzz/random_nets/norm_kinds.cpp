#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

// Values that each statistic is of: few of them make a normalization amplify rounding.
bool enough(const Shape& shape, int64_t statistics) { return shape.count() / statistics >= 8; }

Blobs batch_norm(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || !enough(shape, shape[1])) return {};
  std::string params = cat("batch_norm_param { moving_average_fraction: ", w.number(0.8, 0.99));
  if (w.for_ranks)
    params += " sync_bn: true";
  else if (w.maybe(10) && shape[0] % 2 == 0 && enough(shape, 2 * shape[1]))
    params += " stats_batch_size: 2";
  if (w.maybe(15)) params += " scale_bias: true";
  if (w.maybe(15)) params += cat(" eps: ", w.number(0.001, 0.1));
  int top = w.add_pointwise("BatchNorm", b, params + " }");
  if (w.maybe(60))
    top = w.add_learned("Scale", {top},
                        "scale_param { bias_term: true filler { type: 'uniform' min: "
                        "0.5 max: 1.5 } bias_filler { value: 0.1 } }",
                        2, true);
  if (w.maybe(50)) top = w.add_pointwise("ReLU", top);
  return {top};
}
Blobs bn(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || !enough(shape, shape[1])) return {};
  return {w.add_learned("BN", {b},
                        cat("bn_param { slope_filler { type: 'uniform' min: 0.5 max: 1.5 } ",
                            w.for_ranks ? "sync_bn: true }" : "}"),
                        2)};
}
Blobs group_norm(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const int groups = shape[1] % 4 == 0 ? 4 : shape[1] % 2 == 0 ? 2 : 1;
  if (!enough(shape, shape[0] * groups)) return {};
  return {w.add_learned("GroupNorm", {b}, cat("group_norm_param { num_groups: ", groups, " }"), 2)};
}
Blobs layer_norm(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  if (w.maybe(10) && shape.count() >= 8)
    return {w.add("LayerNorm", {b}, "layer_norm_param { axis: 0 scale_bias: false }")};
  const int axis = w.between(1, shape.axes() - 1);
  if (shape.count(axis) < 8) return {};
  return {w.add_learned("LayerNorm", {b}, cat("layer_norm_param { axis: ", axis, " }"), 2)};
}
Blobs mvn(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 3) return {};
  const bool across = w.maybe(50);
  if (!enough(shape, across ? shape[0] : shape[0] * shape[1])) return {};
  return {w.add("MVN", {b},
                cat("mvn_param { eps: 0.01 ", across ? "across_channels: true " : "",
                    w.maybe(25) ? "normalize_variance: false }" : "}"))};
}
Blobs lrn(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  std::string params = cat("lrn_param { local_size: ", 2 * w.between(0, 3) + 1,
                           " alpha: ", w.number(0.01, 0.8), " beta: ", w.number(0.5, 1));
  if (is_image(shape) && w.maybe(35))
    params += " norm_region: WITHIN_CHANNEL";
  else if (w.maybe(25))
    params += " k: 2";
  return {w.add("LRN", {b}, params + " }")};
}
Blobs normalize(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || shape[1] < 4) return {};
  // The length of values that may all be 0 has no gradient.
  const int shifted = w.add("Power", {b}, "power_param { shift: 0.35 }");
  if (is_image(shape) && w.maybe(50))
    return {w.add_learned(
        "Normalize", {shifted},
        cat("norm_param { across_spatial: ", w.maybe(50) ? "true" : "false",
            " channel_shared: ", w.maybe(50) ? "true" : "false", " scale_filler { value: 2 } }"),
        1)};
  return {w.add("GRN", {shifted}, "grn_param { bias: 0.5 }")};
}

}  // namespace

const std::vector<LayerKind>& norm_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"BatchNorm", 20, batch_norm}, {"BN", 3, bn},   {"GroupNorm", 3, group_norm},
      {"LayerNorm", 3, layer_norm},  {"MVN", 3, mvn}, {"LRN", 6, lrn},
      {"Normalize", 3, normalize},
  };
  return kinds;
}

}  // namespace crema::tests
