#include "kernels/loss.h"

#include "base/error.h"
#include "tensor/on.h"

namespace crema {

void check_labels(const Tensor& labels, int64_t classes, std::optional<int> ignored) {
  if (labels.device() != Device::cpu) return;
  on(labels, [&]<typename T>() {
    const T* label = labels.data<T>();
    for (int64_t i = 0; i < labels.count(); ++i) {
      const bool known = label[i] >= 0 && label[i] < static_cast<T>(classes);
      if (known || (ignored && static_cast<int>(label[i]) == *ignored)) continue;
      fail("label ", label[i], " at position ", i, " of the batch is out of range: there are ",
           classes, " scores for each example, so labels go from 0 to ", classes - 1,
           "; check the data, num_output of the layer that gives the scores, and ignore_label");
    }
  });
}

}  // namespace crema
