#include "net/plan/folded.h"

namespace crema {

std::shared_ptr<FoldedWeights> FoldedStore::find(const Folding& folding) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.weights.expired(); });
  for (const Entry& entry : entries_) {
    if (entry.folding == folding) return entry.weights.lock();
  }
  return nullptr;
}

std::shared_ptr<FoldedWeights> FoldedStore::take(Context& context, const Folding& folding) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::shared_ptr<FoldedWeights> found = find(folding)) return found;
  const auto allocate = [&](const PlanParameter& p) {
    if (p.packed_bytes > 0)
      return Tensor(context, {static_cast<int64_t>(p.packed_bytes)}, DType::u8);
    return Tensor(context, p.shape, p.dtype, p.format);
  };
  auto made = std::make_shared<FoldedWeights>();
  made->weights = allocate(folding.weights);
  made->bias = allocate(folding.bias);
  context.synchronize();  // they are cleared: other nets have streams of their own
  entries_.push_back({folding, made});
  return made;
}

bool FoldedStore::has(const Folding& folding) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find(folding) != nullptr;
}

}  // namespace crema
