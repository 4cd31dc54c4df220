// Ordered lists of the implementations of one kernel, of which the first that supports a case is
// used: choose() for kernels that are objects, run_first() for those that are functions. The last of
// a list is "plain", the reference, where there is one for the device and the dtype.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
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

// The allowed values of context.implementation, -implementation on the command line: what a test or
// a user may want instead of the first that fits. The layer tests run every row with each of them.
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

// run returns false, having written nothing, when it does not support the case.
template <typename... Args>
struct KernelFunction {
  const char* name;
  bool (*run)(Context& context, Args... args);
};

// If context.implementation names an entry, the search starts there; entries before it are tried
// last.
template <typename... Args, size_t kSize>
void run_first(Context& context, const char* kernel, const KernelFunction<Args...> (&list)[kSize],
               const std::type_identity_t<Args>&... args) {
  size_t first = 0;
  for (size_t i = 1; i < kSize; ++i) {
    if (context.implementation == list[i].name) first = i;
  }
  for (size_t i = 0; i < kSize; ++i) {
    if (list[(first + i) % kSize].run(context, args...)) return;
  }
  fail("no implementation of ", kernel, " takes this case");
}

// For the few choices that are no list: whether -implementation plain asks for the reference.
inline bool wants_reference(const Context& context) { return context.implementation == "plain"; }

// Fused kernels have no name: a named implementation turns them off. They exist on GPUs only; their
// makers return null where they do not support a case.
inline bool allows_fusion(const Context& context) {
  return context.device() == Device::gpu && context.implementation.empty();
}

}  // namespace crema
