// Fillers: initialize a parameter (Caffe's seven types, "diagonal", "dirac", "whitening").
#pragma once

#include "kernels/pointwise/batch_values.h"
#include "tensor/tensor.h"

namespace crema {

class FillerParameter;

// Error for an unknown type.
void check_filler(const FillerParameter& filler);

// Fills the tensor, whatever its device and format, from the random stream `random`. Values are
// generated in row-major order, so the same seed gives the same weights on every device. Error for
// an unknown type or a shape that the type cannot fill. samples: the tensor is this part of a batch
// along its first axis, and gets the values of that part.
void fill(Context& context, const FillerParameter& filler, const Random& random,
          const Tensor& tensor, const BatchShare& samples = {});

}  // namespace crema
