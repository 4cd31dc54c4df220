// Labels of the softmax loss, read in the same way on both devices.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/labels/labels.h"
#include "kernels/softmax/softmax_loss.h"

namespace crema {

template <typename T>
struct SoftmaxLabels : ClassLabels<T> {
  const T* weights;           // one per class, or null
  const T* position_weights;  // one per position, or null

  SoftmaxLabels(const SoftmaxLossCase& c, const Tensor& labels)
      : ClassLabels<T>{labels.data<T>(), c.view.classes, c.ignore_label.has_value(),
                       c.ignore_label.value_or(0)},
        weights(c.class_weights.data<T>()),
        position_weights(c.position_weights.data<T>()) {}

  // Without labels, where there are shares of classes (softmax_shares_loss.h), none counts.
  CREMA_HD int at(int64_t position) const {
    return this->labels ? ClassLabels<T>::at(position) : ClassLabels<T>::kIgnored;
  }
  CREMA_HD T weight(int64_t position, int64_t label) const {
    return (weights ? weights[label] : T(1)) *
           (position_weights ? position_weights[position] : T(1));
  }
  // What the normalizer counts: positions, or the sum of their weights if there are any.
  CREMA_HD T counted(int64_t position) const {
    const int label = this->at(position);
    return label < 0 ? T(0) : position_weights ? weight(position, label) : T(1);
  }
};

// Caffe takes the logarithm of max(p, FLT_MIN), so no position costs more than this.
template <typename T>
CREMA_HD T limited_loss(T loss) {
  const T maximum = T(87.33654475);
  return loss > maximum ? maximum : loss;
}

}  // namespace crema
