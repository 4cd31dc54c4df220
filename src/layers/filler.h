// Fillers: how a parameter gets its first values (Caffe's seven types and "diagonal").
#pragma once

#include "tensor/tensor.h"

namespace crema {

class FillerParameter;

// Error for a type that is none.
void check_filler(const FillerParameter& filler);

// Fills the tensor, whatever its device and format, from the stream `random`. Values are drawn in
// plain order, so that the same seed gives the same weights on every device. Error for an unknown
// type or a shape the type cannot fill.
void fill(Context& context, const FillerParameter& filler, const Random& random,
          const Tensor& tensor);

}  // namespace crema
