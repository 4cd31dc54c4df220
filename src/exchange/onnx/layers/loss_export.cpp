// Losses, for training in C: operators of Crema's own, which write the loss and the gradient of what it
// judges. Their settings: the factor of the loss, and its divisor, 0 for the number of labels that count.
#include "exchange/onnx/layer_export.h"
#include "layers/loss/loss_normalizer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

void require_plain(const LayerExport& layer, bool plain, const char* field) {
  if (!plain) layer.refuse(cat("it has ", field), "leave that out, or train with `crema train`");
}

void write_loss(LayerExport& layer, const char* op, const LossNormalizer& by,
                OnnxAttributes settings) {
  require_plain(layer, layer.bottoms() == 2 && layer.tops() == 1, "a third bottom or second top");
  const LossParameter& p = layer.message().loss_param();
  settings.push_back({"divisor", by.by_valid ? 0.f : static_cast<float>(by.constant)});
  settings.push_back({"weight", layer.loss_weight()});
  if (p.has_ignore_label()) settings.push_back({"ignore_label", int64_t{p.ignore_label()}});
  layer.write(op, {layer.bottom(0), layer.bottom(1)}, settings);
}

void write_softmax_loss(LayerExport& layer) {
  const LossParameter& p = layer.message().loss_param();
  const SoftmaxParameter& softmax = layer.message().softmax_param();
  require_plain(layer, !p.has_label_smoothing() && softmax.label_smooth_factor() == 0,
                "label_smoothing");
  require_plain(layer, p.class_weighting_size() == 0 && softmax.class_weight_size() == 0,
                "a weight for each class");
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(softmax.axis());
  const int64_t positions = x.count(0, axis) * x.count(axis + 1);
  require_plain(layer, layer.bottom_shape(1).count() == positions, "a label for each class");
  write_loss(layer, "SoftmaxLoss", loss_normalizer(p, LossParameter::VALID, x[0], positions),
             {{"axis", int64_t{axis}}});
}
EXPORT_LOSS(SoftmaxWithLoss, write_softmax_loss);

void write_sigmoid_loss(LayerExport& layer) {
  const Shape& x = layer.bottom_shape();
  write_loss(
      layer, "SigmoidLoss",
      loss_normalizer(layer.message().loss_param(), LossParameter::BATCH_SIZE, x[0], x.count()),
      {});
}
EXPORT_LOSS(SigmoidCrossEntropyLoss, write_sigmoid_loss);

void write_euclidean_loss(LayerExport& layer) {
  write_loss(layer, "EuclideanLoss", {false, static_cast<double>(layer.bottom_shape()[0])}, {});
}
EXPORT_LOSS(EuclideanLoss, write_euclidean_loss);

}  // namespace
}  // namespace crema
