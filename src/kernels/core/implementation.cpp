#include "kernels/core/implementation.h"

#include <algorithm>

#include "device/cudnn.h"

namespace crema {
namespace {

// What a build may lack, and the option that brings it.
struct Part {
  const char *name, *option;
  bool here;
};

#ifdef CREMA_CUDA
constexpr Part kGpu = {"GPU support", "-DCREMA_CUDA=ON", true};
#else
constexpr Part kGpu = {"GPU support", "-DCREMA_CUDA=ON", false};
#endif
#ifdef CREMA_ONEDNN
constexpr Part kOnednn = {"oneDNN", "-DCREMA_ONEDNN=ON", true};
#else
constexpr Part kOnednn = {"oneDNN", "-DCREMA_ONEDNN=ON", false};
#endif
constexpr Part kOwn = {"", "", true};

struct Named {
  const char* name;
  Part needs;
};

const std::vector<Named>& all_names() {
  const Part cudnn = kGpu.here ? Part{"cuDNN", "-DCREMA_CUDNN=ON", has_cudnn()} : kGpu;
  static const std::vector<Named> names = {
      {"autotuned", kGpu},        {"cublas", kGpu},     {"cudnn", cudnn},
      {"depthwise_tensor", kGpu}, {"per_group", cudnn}, {"space_to_depth", cudnn},
      {"stem_3x3", kGpu},         {"stem_7x7s2", kGpu}, {"onednn", kOnednn},
      {"depthwise", kOwn},        {"im2col", kOwn},     {"plain", kOwn}};
  return names;
}

}  // namespace

const std::vector<std::string>& implementation_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names;
    for (const Named& named : all_names()) {
      if (named.needs.here) names.push_back(named.name);
    }
    return names;
  }();
  return names;
}

void check_implementation(const std::string& name) {
  const std::vector<std::string>& names = implementation_names();
  if (name.empty() || std::count(names.begin(), names.end(), name) > 0) return;
  for (const Named& named : all_names()) {
    if (named.name == name)
      fail("-implementation ", name, ": this build has no ", named.needs.name, "; build with ",
           named.needs.option, " for it, or take one of ", join(names, ", "));
  }
  fail("-implementation ", name, ": no kernel of this build has an implementation of this name",
       did_you_mean(name, names), "; there are ", join(names, ", "));
}

}  // namespace crema
