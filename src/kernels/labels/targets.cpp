#include "kernels/labels/targets.h"

#include "base/error.h"
#include "tensor/on.h"

namespace crema {
namespace {

[[noreturn]] void fail_for_target(int64_t position, double target, const TargetRange& range,
                                  int64_t each, const std::string& when = "") {
  std::string valid =
      range.whole && range.high == range.low + 1
          ? cat(range.low, " or ", range.high)
          : cat(range.whole ? "an integer from " : "a number from ", range.low, " to ", range.high);
  if (range.ignored) valid += cat(", or ignore_label ", *range.ignored);
  fail("target ", digits_of(target), " of image ", position / each, " of the batch", when,
       each > 1 ? cat(", value ", position % each, ",") : "", " is not ", valid,
       range.advice.empty() ? "" : "; ", range.advice);
}

}  // namespace

void check_targets(const Tensor& targets, const TargetRange& range, int64_t each) {
  if (targets.device() != Device::cpu) return;
  on(targets, [&]<typename T>() {
    const T* const target = targets.data<T>();
    const TargetBounds<T> bounds = range.bounds<T>();
    const int64_t count = targets.count();
    // Most batches need only this, which is vectorized.
    bool good = !range.whole;
#pragma omp parallel for simd reduction(&& : good) if (count > 65536)
    for (int64_t i = 0; i < count; ++i) good = good && bounds.in_range(target[i]);
    if (good) return;
    for (int64_t i = 0; i < count; ++i)
      if (!bounds.has(target[i])) fail_for_target(i, target[i], range, each);
  });
}

void check_targets(const std::vector<double>& targets, const TargetRange& range, int64_t each) {
  const TargetBounds<double> bounds = range.bounds<double>();
  for (size_t i = 0; i < targets.size(); ++i)
    if (!bounds.has(targets[i])) fail_for_target(static_cast<int64_t>(i), targets[i], range, each);
}

void check_target_note(Context& context, const Tensor& note, const TargetRange& range) {
  if (const std::optional<NotedLabel> bad = take_label_note(context, note))
    fail_for_target(bad->position, bad->label, range, bad->each, when_noted(*bad));
}

}  // namespace crema
