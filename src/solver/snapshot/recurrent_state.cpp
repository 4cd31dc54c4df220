#include "solver/snapshot/recurrent_state.h"

#include "base/log.h"
#include "base/strings.h"
#include "solver/iteration/optimizer.h"

namespace crema {
namespace {

bool holds(const BlobProto& blob, const Shape& shape) {
  const std::vector<int64_t> dims(blob.shape().dim().begin(), blob.shape().dim().end());
  return dims == shape.dims() && blob.data_size() + blob.double_data_size() == shape.count();
}

}  // namespace

void store_recurrent(const std::vector<Net*>& nets, SolverState* state) {
  for (Net* const net : nets) store_blobs(net->context(), net->carried(), state->mutable_carried());
}

void restore_recurrent(const SolverState& state, const std::vector<Net*>& nets) {
  int begin = 0;
  for (Net* const net : nets) {
    Context& context = net->context();
    const std::vector<Tensor> tensors = net->carried();
    const auto stored = [&](size_t i) -> const BlobProto& {
      return state.carried(begin + static_cast<int>(i));
    };
    bool fits = begin + static_cast<int>(tensors.size()) <= state.carried_size();
    for (size_t i = 0; i < tensors.size() && fits; ++i) fits = holds(stored(i), tensors[i].shape());
    if (!fits) {
      context.log().warning(
          cat("What the recurrent layers of net \"", net->name(),
              "\" carry from one batch into the next is not in the snapshot: it starts from zero"));
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      fits ? read_blob(context, stored(i), tensors[i]) : zero(context, tensors[i]);
    begin += static_cast<int>(tensors.size());
  }
}

}  // namespace crema
