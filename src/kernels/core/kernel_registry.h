// The registry of kernels. An operation, such as a convolution, is a list of implementations. Each
// of them registers in its own file, in one line with a name, its devices and a priority:
//   REGISTER_KERNEL(lrn_forward_kernels, "cuda", RunsOn::gpu, 20, lrn_forward_gpu);
// The implementation of the highest priority that takes a case computes it. Which ones exist depends
// only on the files that are built. Libraries of objects are linked whole, so that none gets lost.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/context.h"

namespace crema {

enum class RunsOn { cpu, gpu, both };

struct Implementation {
  const char* name = nullptr;
  RunsOn devices = RunsOn::both;
  int priority = 0;              // unique among those of an operation that share a device
  void (*function)() = nullptr;  // has the type that the operation calls

  bool runs_on(Device device) const {
    return devices == RunsOn::both || (devices == RunsOn::gpu) == (device == Device::gpu);
  }
};

// An operation is defined once, at namespace scope, as KernelFunctions or KernelMakers below. The
// constructor is constexpr, so that implementations can register before main in any order.
class Operation {
 public:
  static constexpr int kMaxImplementations = 32;

  // name: for messages. An operation has an implementation "plain", the reference of tests, or says
  // in no_reference why not.
  constexpr explicit Operation(const char* name, const char* no_reference = nullptr)
      : name_(name), no_reference_(no_reference) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const char* name() const { return name_; }
  const char* no_reference() const { return no_reference_; }
  // By descending priority.
  const Implementation* begin() const { return list_.data(); }
  const Implementation* end() const { return list_.data() + count_; }

 protected:
  bool insert(const Implementation& added);
  // Calls attempt(implementation) for those of the context's device until it returns true: first the
  // one that context.implementation names, then those after it, then those before it.
  template <typename Attempt>
  bool search(const Context& context, const Attempt& attempt) const {
    const int first = context.implementation.empty() ? 0 : index_of_named(context);
    for (int i = 0; i < count_; ++i) {
      const Implementation& one = list_[(first + i) % count_];
      if (one.runs_on(context.device()) && attempt(one)) return true;
    }
    return false;
  }
  // Adds the implementation to context.ran and logs it, unless it is there. May be called by several
  // threads at once.
  void log_first_run(Context& context, const Implementation& one,
                     const std::function<std::string()>& refusals) const;
  // Logs a choice at -v 1. refusals: "; NAME declined: REASON" for each one tried before.
  void log_choice(const Context& context, const Implementation& chosen,
                  const std::string& refusals) const;
  [[noreturn]] void fail_for(const std::string& refusals) const;

 private:
  int index_of_named(const Context& context) const;

  const char *name_, *no_reference_;
  std::array<Implementation, kMaxImplementations> list_ = {};
  int count_ = 0;
};

// Null: the kernel ran. Otherwise static text: why it does not take the case, and nothing was
// written.
using Refusal = const char*;

// An operation whose kernels are functions without state.
template <typename... Args>
class KernelFunctions : public Operation {
 public:
  using Function = Refusal (*)(Context& context, Args... args);
  using Operation::Operation;

  bool add(const char* name, RunsOn devices, int priority, Function function) {
    return insert({name, devices, priority, reinterpret_cast<void (*)()>(function)});
  }

  // Runs the first that takes the case; Error if none does. Allocates nothing, except at -v 1, which
  // logs the first run of each implementation in a context.
  void run(Context& context, Args... args) const {
    std::array<std::pair<const char*, Refusal>, kMaxImplementations> refusals;
    size_t tried = 0;
    const auto text = [&] {
      std::string all;
      for (size_t i = 0; i < tried; ++i)
        all += cat("; ", refusals[i].first, " declined: ", refusals[i].second);
      return all;
    };
    const bool ran = search(context, [&](const Implementation& one) {
      const Refusal refusal = reinterpret_cast<Function>(one.function)(context, args...);
      if (refusal) {
        refusals[tried++] = {one.name, refusal};
      } else if (context.log().verbosity >= 1) {
        log_first_run(context, one, text);
      }
      return refusal == nullptr;
    });
    if (!ran) fail_for(text());
  }
};

// KernelFunctions with the arguments of a function: KernelsOf<decltype(lrn_forward)>.
template <typename Function>
struct KernelsOfFunction;
template <typename... Args>
struct KernelsOfFunction<void(Context&, Args...)> {
  using Type = KernelFunctions<Args...>;
};
template <typename Function>
using KernelsOf = typename KernelsOfFunction<Function>::Type;

// An operation whose kernels are objects, made for a case once and then called many times.
template <typename Kernel, typename Case>
class KernelMakers : public Operation {
 public:
  // Null, with the reason, when it does not take the case.
  using Maker = std::unique_ptr<Kernel> (*)(Context& context, const Case& c, std::string& reason);
  using Operation::Operation;

  bool add(const char* name, RunsOn devices, int priority, Maker maker) {
    return insert({name, devices, priority, reinterpret_cast<void (*)()>(maker)});
  }

  // The first that takes the case; null if none does. context.chosen gets its name, and -v 1 logs
  // it with the reasons of those that declined.
  std::unique_ptr<Kernel> find(Context& context, const Case& c, std::string& refusals) const {
    std::unique_ptr<Kernel> made;
    search(context, [&](const Implementation& one) {
      std::string reason;
      const size_t recorded = context.chosen.size();
      made = reinterpret_cast<Maker>(one.function)(context, c, reason);
      if (!made) {
        context.chosen.resize(recorded);
        refusals += cat("; ", one.name, " declined: ", reason);
        return false;
      }
      context.chosen.insert(context.chosen.begin() + static_cast<int64_t>(recorded), one.name);
      log_choice(context, one, refusals);
      return true;
    });
    return made;
  }
  // Likewise; Error if none takes it.
  std::unique_ptr<Kernel> make(Context& context, const Case& c) const {
    std::string refusals;
    std::unique_ptr<Kernel> made = find(context, c, refusals);
    if (!made) fail_for(refusals);
    return made;
  }
  // The implementation of this name alone, for kernels that build on another one. Null, with the
  // reason, when it does not take the case or does not exist in this build.
  std::unique_ptr<Kernel> make_named(const char* name, Context& context, const Case& c,
                                     std::string& reason) const {
    for (const Implementation& one : *this) {
      if (one.runs_on(context.device()) && std::string_view(one.name) == name)
        return reinterpret_cast<Maker>(one.function)(context, c, reason);
    }
    reason = cat("this build has no ", name);
    return nullptr;
  }
};

#define CREMA_REGISTER_KERNEL(number, operation, ...) \
  [[maybe_unused]] static const bool registered_kernel_##number = operation.add(__VA_ARGS__)
#define CREMA_REGISTER_KERNEL_AT(number, ...) CREMA_REGISTER_KERNEL(number, __VA_ARGS__)
// REGISTER_KERNEL(operation, name, devices, priority, function or maker); at namespace scope.
#define REGISTER_KERNEL(...) CREMA_REGISTER_KERNEL_AT(__COUNTER__, __VA_ARGS__)

// All operations of this build that have an implementation.
std::vector<const Operation*> operations();

// The allowed values of context.implementation, -implementation on the command line: what a test or
// a user may want instead of the first that fits. The layer tests run every row with each of them.
// Not those of operations without a reference: fused kernels, which a named implementation turns off.
const std::vector<std::string>& implementation_names();
// Error that suggests the nearest name when `name` is not one of those; "" is valid.
void check_implementation(const std::string& name);

// A name that only other builds have, the part that this one lacks, and the option that brings it.
struct AbsentKernel {
  const char *name, *part, *option;
};
// CMake collects them from the REGISTER_KERNEL lines of the files that it leaves out.
const std::vector<AbsentKernel>& absent_kernels();

// Whether -implementation plain asks for the reference, for what depends on that beforehand, such as
// the size of a workspace.
inline bool wants_reference(const Context& context) { return context.implementation == "plain"; }

// A named implementation turns fused kernels off. They exist on GPUs only.
inline bool allows_fusion(const Context& context) {
  return context.device() == Device::gpu && context.implementation.empty();
}

}  // namespace crema
