#include "tensor/precision.h"

#include "base/error.h"

namespace crema {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"fp32", "tf32", "bf16", "fp16"};
  return all;
}

}  // namespace

const char* name_of(Precision precision) { return names()[static_cast<size_t>(precision)].c_str(); }

Precision precision_named(const std::string& name) {
  for (size_t i = 0; i < names().size(); ++i) {
    if (names()[i] == name) return static_cast<Precision>(i);
  }
  fail("unknown precision \"", name, "\"", did_you_mean(name, names()), "; the precisions are ",
       join(names(), ", "));
}

}  // namespace crema
