// The names that PyTorch, Keras, ONNX and Darknet use for Crema's layers, solvers, policies and
// fillers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crema {

enum class Vocabulary { layers, solvers, rate_policies, fillers };

// ` (did you mean "Convolution"?)` for Conv2d, nn.Conv2d or Conv; a field that belongs with it
// follows the question: ` (did you mean "Pooling"? Write pooling_param { pool: MAX ... })`. For
// other words did_you_mean() of base/strings.h.
std::string suggestion(Vocabulary vocabulary, std::string_view word,
                       const std::vector<std::string>& candidates);

}  // namespace crema
