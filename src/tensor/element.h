// The type of values as ranks exchange them.
#pragma once

#include "base/error.h"
#include "device/communicator.h"
#include "tensor/dtype.h"

namespace crema {

// Error for a type that is not real.
inline Element element_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Element::f32;
    case DType::f64:
      return Element::f64;
    case DType::f16:
      return Element::f16;
    case DType::bf16:
      return Element::bf16;
    default:
      fail("ranks exchange real numbers");
  }
}

}  // namespace crema
