// An ordered list of implementations of one kernel. The first that accepts a case serves it; the
// last accepts every case.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/context.h"

namespace crema {

// make returns null and sets `reason` when it cannot serve the case.
template <typename Kernel, typename Case>
struct Implementation {
  const char* name;
  std::unique_ptr<Kernel> (*make)(Context& context, const Case& c, std::string& reason);
};

// The names that context.implementation may have: a new one in a kernel belongs here too, which the
// tests of the layers then run.
const std::vector<std::string>& implementation_names();
// Error with the nearest of those when `name` is none; "" is good.
void check_implementation(const std::string& name);

// context.implementation, when it names an entry of this list, forces that entry (it still may
// refuse: then the next entries are tried). -v 1 logs who serves and who refused why;
// context.served gets the name.
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
    const size_t noted = context.served.size();
    if (std::unique_ptr<Kernel> made = list[i].make(context, c, reason)) {
      context.served.insert(context.served.begin() + static_cast<int64_t>(noted), list[i].name);
      if (context.log().verbosity >= 1)
        context.log().info(cat(kernel, " is served by ", list[i].name, refusals));
      return made;
    }
    context.served.resize(noted);
    refusals += cat("; ", list[i].name, " refused: ", reason);
  }
  fail("no implementation of ", kernel, " takes this case", refusals);
}

// Of kernels that have one body for every device and a faster one for the CPU: whether the first
// runs.
inline bool plain_body(const Context& context) {
  return context.device() == Device::gpu || context.implementation == "plain";
}

}  // namespace crema
