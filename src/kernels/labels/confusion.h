// The confusion of a classifier: how often each label was given which answer.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace crema {

// Whether add_confusion() can read these scores where they are.
bool counts_confusion(const Tensor& scores, int axis, const Tensor& labels);

// Adds a batch to counts, an int32 tensor on the context's device: of C classes, counts[label * C + answer]
// and, at the end, counts[C * C], the labels that are no class. The answer is the class with the
// highest score, the first of equal ones. scores: classes along `axis`; labels: one for each list of
// scores, in their order; those that are `ignored` do not count. Does not wait for a GPU.
void add_confusion(Context& context, const Tensor& scores, int axis, const Tensor& labels,
                   std::optional<int> ignored, const Tensor& counts);

}  // namespace crema
