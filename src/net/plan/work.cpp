#include "net/plan/work.h"

#include <algorithm>

#include "net/plan/plan.h"

namespace crema {
namespace {

double bytes_of(const std::vector<Tensor>& tensors) {
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor) bytes += tensor.bytes();
  }
  return static_cast<double>(bytes);
}

double multiply_adds(const Layer& layer, const Preparation& preparation) {
  return static_cast<double>(layer.multiply_adds(preparation.bottoms, preparation.tops));
}

}  // namespace

Work forward_work(const Layer& layer, const Preparation& preparation, const Forward& f) {
  if (layer.traits().is_view || layer.traits().keeps_tops) return {};
  return {2 * multiply_adds(layer, preparation),
          bytes_of(f.bottom) + bytes_of(f.top) + bytes_of(f.parameters) + bytes_of(f.saved)};
}

Work backward_work(const Layer& layer, const Preparation& preparation, const Backward& b) {
  if (layer.traits().is_view) return {};
  const bool data = std::any_of(b.bottom_diff.begin(), b.bottom_diff.end(),
                                [](const Tensor& diff) { return static_cast<bool>(diff); });
  const bool weights = !b.parameter_diff.empty() && b.parameter_diff[0];
  Work work;
  work.operations = 2 * multiply_adds(layer, preparation) * (data + weights);
  for (const std::vector<Tensor>* tensors :
       {&b.bottom, &b.top, &b.top_diff, &b.top_edge.gradient_parts, &b.bottom_diff,
        &b.parameter_diff, &b.saved})
    work.bytes += bytes_of(*tensors);
  if (data) work.bytes += bytes_of(b.parameters);
  return work;
}

Work forward_work(const PlanNode& node) {
  return forward_work(*node.layer, node.preparation, node.arguments.forward);
}

Work backward_work(const PlanNode& node) {
  Work work = backward_work(*node.layer, node.preparation, node.arguments.backward);
  for (const Recomputation& recomputed : node.recomputations)
    work.bytes += bytes_of(recomputed.arguments.bottom) + bytes_of(recomputed.arguments.top);
  for (const DiffSum& sum : node.diff_sums)  // all parts are read, their sum is written
    work.bytes += bytes_of(sum.parts) + static_cast<double>(sum.parts[0].bytes());
  return work;
}

}  // namespace crema
