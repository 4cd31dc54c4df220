// Labels of softmax's loss, read alike on both devices.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/softmax_loss.h"

namespace crema {

template <typename T>
struct SoftmaxLabels {
  static constexpr int kIgnored = -1, kBad = -2;

  const T* labels;
  const T* weights;  // one a class, or null
  int64_t classes;
  bool ignoring;
  int ignored;

  SoftmaxLabels(const SoftmaxLossCase& c, const Tensor& labels)
      : labels(labels.data<T>()),
        weights(c.class_weights.data<T>()),
        classes(c.view.classes),
        ignoring(c.ignore_label.has_value()),
        ignored(c.ignore_label.value_or(0)) {}

  // The class of a place, cut to an integer as Caffe does; or one of the constants above.
  CREMA_HD int at(int64_t place) const {
    const T value = labels[place];
    if (!(value > T(-2e9) && value < T(2e9))) return kBad;
    const int label = static_cast<int>(value);
    if (ignoring && label == ignored) return kIgnored;
    return label >= 0 && label < classes ? label : kBad;
  }
  CREMA_HD T weight(int64_t label) const { return weights ? weights[label] : T(1); }
};

// Caffe takes the logarithm of max(p, FLT_MIN), so no place costs more than this.
template <typename T>
CREMA_HD T limited_loss(T loss) {
  const T most = T(87.33654475);
  return loss > most ? most : loss;
}

}  // namespace crema
