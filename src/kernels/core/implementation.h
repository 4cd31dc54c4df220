// An ordered list of implementations of one kernel. The first that supports a case is used; the
// last supports every case.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/context.h"

namespace crema {

// make returns null and sets `reason` when it does not support the case.
template <typename Kernel, typename Case>
struct Implementation {
  const char* name;
  std::unique_ptr<Kernel> (*make)(Context& context, const Case& c, std::string& reason);
};

// The allowed values of context.implementation. A new implementation's name must be added here; the
// layer tests then run it.
const std::vector<std::string>& implementation_names();
// Error that suggests the nearest name when `name` is not one of those; "" is valid.
void check_implementation(const std::string& name);

// If context.implementation names an entry, the search starts there (if it declines, the next ones
// are tried). -v 1 logs the choice and why others declined; context.chosen gets the name.
template <typename Kernel, typename Case>
std::unique_ptr<Kernel> choose(Context& context, const char* kernel, const Case& c,
                               const std::vector<Implementation<Kernel, Case>>& list) {
  size_t first = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (context.implementation == list[i].name) first = i;
  }
  std::string refusals;
  for (size_t i = first; i < list.size(); ++i) {
    std::string reason;
    const size_t noted = context.chosen.size();
    if (std::unique_ptr<Kernel> made = list[i].make(context, c, reason)) {
      context.chosen.insert(context.chosen.begin() + static_cast<int64_t>(noted), list[i].name);
      if (context.log().verbosity >= 1)
        context.log().info(cat(kernel, " is implemented by ", list[i].name, refusals));
      return made;
    }
    context.chosen.resize(noted);
    refusals += cat("; ", list[i].name, " declined: ", reason);
  }
  fail("no implementation of ", kernel, " takes this case", refusals);
}

// For kernels with one implementation for every device and a faster one for the CPU: whether to use
// the former.
inline bool generic_body(const Context& context) {
  return context.device() == Device::gpu || context.implementation == "plain";
}

}  // namespace crema
