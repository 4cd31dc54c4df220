// Layer types and fields of forks that are not here, and what does their work.
#pragma once

#include <string>

namespace crema {

// `what` is a type, or a message and a field: "LayerParameter.dense_crf_param". Null: nothing is known.
const char* instead_of(const std::string& what);

// Whether the type is one of training and tests that this library leaves out.
bool is_absent_type(const std::string& type);

}  // namespace crema
