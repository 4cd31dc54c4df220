// The calls of a convolution or a fully connected layer that implementations are chosen for.
#pragma once

namespace crema {

enum class ConvCall { fprop, dgrad, wgrad, both_gradients };

}  // namespace crema
