// A tensor as DLPack (dmlc/dlpack, version 0.8) hands it from one library to another.
#pragma once

#include <pybind11/pybind11.h>

#include "tensor/tensor.h"

namespace crema::python {

// A capsule named "dltensor" over a row-major float32 tensor, which keeps its memory alive.
// `device`: the GPU's ordinal.
pybind11::capsule dlpack_of(const Tensor& tensor, int device);

// DLPack's device of a tensor: type and ordinal.
std::pair<int, int> dlpack_device(const Tensor& tensor, int device);

}  // namespace crema::python
