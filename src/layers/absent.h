// Layer types and fields of forks that are not here, and what does their work.
#pragma once

#include <string>

namespace crema {

// `what` is a type, or a message and a field: "LayerParameter.dense_crf_param". Null: nothing is known.
const char* instead_of(const std::string& what);

}  // namespace crema
