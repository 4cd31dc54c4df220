#include "kernels/core/implementation.h"

#include <algorithm>

namespace crema {

const std::vector<std::string>& implementation_names() {
  static const std::vector<std::string> names = {
#ifdef CREMA_CUDA
      "autotuned", "cublas",         "cudnn",    "depthwise_tensor",
      "per_group", "space_to_depth", "stem_3x3", "stem_7x7s2",
#endif
#ifdef CREMA_ONEDNN
      "onednn",
#endif
      "depthwise", "im2col",         "plain"};
  return names;
}

void check_implementation(const std::string& name) {
  const std::vector<std::string>& names = implementation_names();
  if (name.empty() || std::count(names.begin(), names.end(), name) > 0) return;
  fail("-implementation ", name, ": no kernel of this build has an implementation of this name",
       did_you_mean(name, names), "; there are ", join(names, ", "));
}

}  // namespace crema
