#include "kernels/core/kernel_registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace crema {
namespace {

std::vector<const Operation*>& registered() {
  static std::vector<const Operation*> all;
  return all;
}

}  // namespace

bool Operation::insert(const Implementation& added) {
  if (count_ == kMaxImplementations) {  // before main, where nothing catches an Error
    std::fprintf(stderr, "%s has more than %d implementations: raise kMaxImplementations\n", name_,
                 kMaxImplementations);
    std::abort();
  }
  if (count_ == 0) registered().push_back(this);
  int at = count_++;
  for (; at > 0 && list_[at - 1].priority < added.priority; --at) list_[at] = list_[at - 1];
  list_[at] = added;
  return true;
}

int Operation::index_of_named(const Context& context) const {
  for (int i = 0; i < count_; ++i) {
    if (list_[i].runs_on(context.device()) && context.implementation == list_[i].name) return i;
  }
  return 0;
}

void Operation::log_first_run(Context& context, const Implementation& one,
                              const std::function<std::string()>& refusals) const {
  const std::lock_guard<std::mutex> lock(context.ran_mutex);
  if (std::count(context.ran.begin(), context.ran.end(), &one) > 0) return;
  context.ran.push_back(&one);
  log_choice(context, one, refusals());
}

void Operation::log_choice(const Context& context, const Implementation& chosen,
                           const std::string& refusals) const {
  if (context.log().verbosity >= 1)
    context.log().info(cat(name_, " is implemented by ", chosen.name, refusals));
}

void Operation::fail_for(const std::string& refusals) const {
  fail("no implementation of ", name_, " takes this case", refusals);
}

// In the order of their names: that of registration depends on the linker.
std::vector<const Operation*> operations() {
  std::vector<const Operation*> all = registered();
  std::stable_sort(all.begin(), all.end(), [](const Operation* a, const Operation* b) {
    return std::string_view(a->name()) < b->name();
  });
  return all;
}

const std::vector<std::string>& implementation_names() {
  static const std::vector<std::string> names = [] {
    std::set<std::string> all;
    for (const Operation* operation : operations()) {
      if (operation->no_reference()) continue;
      for (const Implementation& one : *operation) all.insert(one.name);
    }
    return std::vector<std::string>(all.begin(), all.end());
  }();
  return names;
}

void check_implementation(const std::string& name) {
  const std::vector<std::string>& names = implementation_names();
  if (name.empty() || std::count(names.begin(), names.end(), name) > 0) return;
  for (const AbsentKernel& absent : absent_kernels()) {
    if (absent.name == name)
      fail("-implementation ", name, ": this build has no ", absent.part, "; build with ",
           absent.option, " for it, or take one of ", join(names, ", "));
  }
  fail("-implementation ", name, ": no kernel of this build has an implementation of this name",
       did_you_mean(name, names), "; there are ", join(names, ", "));
}

}  // namespace crema
