// pyloss.EuclideanLossLayer (Caffe's example of a loss in Python): the layer "EuclideanLoss". Like
// any Python layer it counts only with a loss_weight in the file, which multiplies the gradients.
#include "layers/python/native.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

void make_euclidean(LayerParameter& message, bool) {
  message.set_type("EuclideanLoss");
  if (message.loss_weight_size() == 0) message.add_loss_weight(0);
}

[[maybe_unused]] const bool euclidean_registered =
    NativeRegistry::add("pyloss.EuclideanLossLayer", {nullptr, make_euclidean, __FILE__});

}  // namespace
}  // namespace crema
