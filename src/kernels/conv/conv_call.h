// The calls of a convolution or a fully connected layer that implementations are chosen for.
#pragma once

namespace crema {

enum class ConvCall { fprop, dgrad, wgrad, both_gradients };

struct ConvCalls {
  bool fprop = true, dgrad = true, wgrad = true;

  bool has(ConvCall call) const {
    switch (call) {
      case ConvCall::fprop:
        return fprop;
      case ConvCall::dgrad:
        return dgrad;
      case ConvCall::wgrad:
        return wgrad;
      case ConvCall::both_gradients:
        return dgrad && wgrad;
    }
    return false;
  }
};

// "fprop", "dgrad", "wgrad", "gradients".
const char* name_of(ConvCall call);

}  // namespace crema
