// Labels of softmax's loss, read alike on both devices.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/core/labels.h"
#include "kernels/softmax/softmax_loss.h"

namespace crema {

template <typename T>
struct SoftmaxLabels : ClassLabels<T> {
  const T* weights;        // one a class, or null
  const T* place_weights;  // one a place, or null

  SoftmaxLabels(const SoftmaxLossCase& c, const Tensor& labels)
      : ClassLabels<T>{labels.data<T>(), c.view.classes, c.ignore_label.has_value(),
                       c.ignore_label.value_or(0)},
        weights(c.class_weights.data<T>()),
        place_weights(c.place_weights.data<T>()) {}

  CREMA_HD T weight(int64_t place, int64_t label) const {
    return (weights ? weights[label] : T(1)) * (place_weights ? place_weights[place] : T(1));
  }
  // What the normalizer counts: places, or their weights where they have any.
  CREMA_HD T counted(int64_t place) const {
    const int label = this->at(place);
    return label < 0 ? T(0) : place_weights ? weight(place, label) : T(1);
  }
};

// Caffe takes the logarithm of max(p, FLT_MIN), so no place costs more than this.
template <typename T>
CREMA_HD T limited_loss(T loss) {
  const T most = T(87.33654475);
  return loss > most ? most : loss;
}

}  // namespace crema
