// Losses and metrics. Labels and targets are new random data in every pass.
#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

// b as the scores of a few classes.
int scores(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  const bool few = shape.axes() > 1 && shape[1] >= 2 && shape[1] <= 12;
  if (few && (shape.axes() == 4 || shape.axes() == 2) && w.maybe(60)) return b;
  if (shape.axes() == 4 && w.maybe(50))
    return w.add_learned("Convolution", {b},
                         cat("convolution_param { num_output: ", w.between(2, 6),
                             " kernel_size: 1 ", weight_filler(w), " ", bias_filler(w), " }"),
                         2);
  if (shape.axes() < 2) return -1;
  return w.add_learned("InnerProduct", {b},
                       cat("inner_product_param { num_output: ", w.between(2, 10), " ",
                           weight_filler(w), " ", bias_filler(w), " }"),
                       2);
}
int labels_of(NetWriter& w, int scores) {
  const Shape shape = w.shape(scores);
  Shape places{shape[0]};
  for (int axis = 2; axis < shape.axes(); ++axis) places.push_back(shape[axis]);
  return w.labels(places, static_cast<int>(shape[1]));
}
// `options`: of "ignore smooth normalize", those that the loss has.
std::string normalization(NetWriter& w, const std::string& options) {
  const auto may = [&](const char* option) { return options.find(option) != std::string::npos; };
  std::string text = "loss_param {";
  const char* const modes[] = {"FULL", "VALID", "BATCH_SIZE", "NONE", "PRE_FIXED"};
  if (w.maybe(60)) {
    const char* const mode = modes[w.between(0, 4)];
    text += cat(" normalization: ", mode);
    if (std::string(mode) == "PRE_FIXED") text += " pre_fixed_normalizer: 3";
  } else if (may("normalize") && w.maybe(20)) {
    text += cat(" normalize: ", w.maybe(50) ? "true" : "false");
  }
  if (may("ignore") && w.maybe(25)) text += " ignore_label: 1";
  if (may("smooth") && w.maybe(15)) text += " label_smoothing: 0.1";
  return text + " } ";
}
std::string weight(NetWriter& w) {
  return w.maybe(60) ? "" : cat("loss_weight: ", w.number(0.1, 2), " ");
}

Blobs softmax_loss(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0) return {};
  if (w.maybe(15)) {  // soft labels
    const int random = w.normal(w.shape(z));
    return {w.add("SoftmaxWithLoss", {z, w.add("Softmax", {random})},
                  weight(w) + normalization(w, "smooth normalize"))};
  }
  std::string params = weight(w) + normalization(w, "ignore smooth normalize");
  Blobs bottoms{z, labels_of(w, z)};
  const bool two_tops = w.maybe(15);
  if (w.maybe(10))
    bottoms.push_back(w.data(w.shape(bottoms[1]), "type: 'uniform' min: 0.5 max: 1.5"));
  if (two_tops) params.clear();
  return {w.add("SoftmaxWithLoss", bottoms, params, two_tops ? 2 : 1)};
}
Blobs focal_loss(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0) return {};
  return {w.add("FocalLoss", {z, labels_of(w, z)}, weight(w))};
}
Blobs infogain_loss(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0) return {};
  const int64_t classes = w.shape(z)[1];
  std::string dims = cat("dim: ", classes, " dim: ", classes);
  const int gain = w.add("Parameter", {},
                         cat("param { lr_mult: 0 } parameter_param { shape { ", dims,
                             " } blob_filler { type: 'uniform' min: 0 max: 1 } }"));
  return {
      w.add("InfogainLoss", {z, labels_of(w, z), gain}, weight(w) + normalization(w, "ignore"))};
}
Blobs multinomial_loss(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0 || w.shape(z).axes() != 2) return {};
  const int p = w.add("Softmax", {z});
  return {w.add("MultinomialLogisticLoss", {p, labels_of(w, z)}, weight(w))};
}
Blobs hinge_loss(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0 || w.shape(z).axes() != 2) return {};
  return {w.add("HingeLoss", {z, labels_of(w, z)},
                weight(w) + (w.maybe(50) ? "hinge_loss_param { norm: L2 }" : ""))};
}
Blobs euclidean_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() == 0) return {};
  int target = w.maybe(20) ? w.find([&](int i) { return i != b && w.shape(i) == shape; }) : -1;
  if (target < 0) target = w.normal(shape);
  return {w.add("EuclideanLoss", w.maybe(80) ? Blobs{b, target} : Blobs{target, b}, weight(w))};
}
Blobs distance_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() == 0) return {};
  const int target = w.normal(shape);
  switch (w.between(0, 3)) {
    case 0:
      return {w.add("L1Loss", {b, target}, weight(w))};
    case 1:
      if (shape.axes() < 2) return {};
      return {w.add("MAE", {b, target}, weight(w))};
    case 2:
      if (shape.axes() < 2) return {};
      return {w.add("SmoothL1Loss", {b, target}, weight(w) + normalization(w, "normalize"))};
    default:
      if (!is_image(shape)) return {};
      return {w.add("L1Loss", {b, target}, weight(w) + "l1_loss_param { l2_per_location: true }")};
  }
}
Blobs sigmoid_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() == 0) return {};
  const int target = w.maybe(50)
                         ? w.data(shape, "type: 'uniform' min: 0.1 max: 0.9")  // noise included
                         : w.add("Threshold", {w.normal(shape)});
  if (w.maybe(15))
    return {w.add("SigmoidCrossEntropyLossWeighted",
                  {b, target, w.data(shape, "type: 'uniform' min: 0.5 max: 1.5")}, weight(w))};
  return {w.add("SigmoidCrossEntropyLoss", {b, target}, weight(w) + normalization(w, "normalize"))};
}
Blobs soft_cross_entropy(NetWriter& w, int b) {
  const int z = scores(w, b);
  if (z < 0) return {};
  const int target = w.add("Softmax", {w.normal(w.shape(z))});
  return {
      w.add("SoftmaxCrossEntropy2Loss", {z, target}, weight(w) + normalization(w, "normalize"))};
}
Blobs pair_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() != 2) return {};
  int other = w.find([&](int i) { return i != b && w.shape(i) == shape; });
  if (other < 0) other = w.normal(shape);
  if (w.maybe(50)) {
    const int similar = w.labels({shape[0]}, 2);
    return {w.add("ContrastiveLoss", {b, other, similar},
                  weight(w) + "contrastive_loss_param { margin: 2 }")};
  }
  return {w.add("TripletLoss", {b, other, w.normal(shape)},
                weight(w) + "triplet_loss_param { margin: 2 }")};
}
Blobs dice_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const int p = w.add("Sigmoid", {b});
  return {w.add("DiceCoefLoss", {p, w.add("Threshold", {w.normal(shape)})}, weight(w))};
}
Blobs multi_label_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const int random = w.add("Threshold", {w.normal(shape)});
  const int signs = w.add("Power", {random}, "power_param { scale: 2 shift: -1 }");
  return {w.add("MultiLabelLoss", {b, signs}, weight(w))};
}
Blobs center_loss(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() != 2) return {};
  return {
      w.add("CenterLoss", {b, w.labels({shape[0]}, 3)},
            "center_loss_param { num_output: 3 center_filler { type: 'xavier' } } " + weight(w))};
}
// Any value times a weight.
Blobs reduction_loss(NetWriter& w, int b) {
  const char* const operations[] = {"SUM", "ASUM", "SUMSQ", "MEAN"};
  return {w.add("Reduction", {b},
                cat("loss_weight: ", w.number(0.01, 0.2),
                    " reduction_param { operation: ", operations[w.between(0, 3)], " }"))};
}
Blobs weighted_blob(NetWriter& w, int b) {
  const int top = w.add("Power", {b}, cat("power_param { scale: ", w.number(0.1, 1), " }"));
  if (w.for_ranks && w.maybe(90))  // ranks refuse a loss with a value for each sample
    return {w.add("Reduction", {top}, "loss_weight: 0.01")};
  w.set_loss_weight(top, w.number(0.005, 0.05));
  return {top};
}

Blobs accuracy(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if ((shape.axes() != 2 && shape.axes() != 4) || shape[1] < 2) return {};
  const bool classes = w.maybe(25);
  w.add("Accuracy", {b, labels_of(w, b)},
        shape[1] > 2 && w.maybe(30) ? "accuracy_param { top_k: 2 }" : "", classes ? 2 : 1);
  return {b};
}
Blobs argmax(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 2) return {};
  w.add("ArgMax", {b},
        w.maybe(30) ? "argmax_param { out_max_val: true }"
                    : cat("argmax_param { axis: ", w.between(1, axes - 1), " }"));
  return {b};
}
Blobs silence(NetWriter& w, int b) {
  w.add("Silence", {b}, "", 0);
  return {b};
}
Blobs threshold(NetWriter& w, int b) {
  w.add("Threshold", {b}, "threshold_param { threshold: 0.1 }");
  return {b};
}

}  // namespace

const std::vector<LayerKind>& loss_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"SoftmaxWithLoss", 24, softmax_loss},
      {"EuclideanLoss", 14, euclidean_loss},
      {"L1Loss and SmoothL1Loss", 8, distance_loss},
      {"SigmoidCrossEntropyLoss", 8, sigmoid_loss},
      {"HingeLoss", 5, hinge_loss},
      {"InfogainLoss", 4, infogain_loss},
      {"FocalLoss", 4, focal_loss},
      {"MultinomialLogisticLoss", 4, multinomial_loss},
      {"SoftmaxCrossEntropy2Loss", 3, soft_cross_entropy},
      {"ContrastiveLoss and TripletLoss", 5, pair_loss},
      {"DiceCoefLoss", 2, dice_loss},
      {"MultiLabelLoss", 2, multi_label_loss},
      {"CenterLoss", 2, center_loss},
      {"Reduction", 6, reduction_loss},
      {"a weighted blob", 5, weighted_blob},
  };
  return kinds;
}

const std::vector<LayerKind>& metric_kinds() {
  static const std::vector<LayerKind> kinds = {{"Accuracy", 5, accuracy},
                                               {"ArgMax", 2, argmax},
                                               {"Silence", 3, silence},
                                               {"Threshold", 1, threshold}};
  return kinds;
}

}  // namespace crema::tests
