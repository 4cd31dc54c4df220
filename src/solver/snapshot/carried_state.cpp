// What recurrent layers carry from one batch into the next, in snapshots.
#include "solver/iteration/optimizer.h"
#include "solver/solver.h"

namespace crema {
namespace {

bool holds(const BlobProto& blob, const Shape& shape) {
  const std::vector<int64_t> dims(blob.shape().dim().begin(), blob.shape().dim().end());
  return dims == shape.dims() && blob.data_size() + blob.double_data_size() == shape.count();
}

}  // namespace

void Solver::store_carried(SolverState* state) {
  store_blobs(context_, net_->carried(), state->mutable_carried());
  if (file_.solver.test_epoch()) return;  // a test begins with zeros
  for (const auto& net : test_nets_)
    store_blobs(context_, net->carried(), state->mutable_carried());
}

// A net for which the state has nothing, or something of another shape (it is older, or the batch
// has another size), begins with zeros, as a new one does.
void Solver::restore_carried(const SolverState& state) {
  int begin = 0;
  const auto restore = [&](Net& net) {
    const std::vector<Tensor> tensors = net.carried();
    const auto stored = [&](size_t i) -> const BlobProto& {
      return state.carried(begin + static_cast<int>(i));
    };
    bool fits = begin + static_cast<int>(tensors.size()) <= state.carried_size();
    for (size_t i = 0; i < tensors.size() && fits; ++i) fits = holds(stored(i), tensors[i].shape());
    if (!fits) {
      context_.log().warning(
          cat("What the recurrent layers of net \"", net.name(),
              "\" carry from one batch into the next is not in the snapshot: it starts from zero"));
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      fits ? read_blob(context_, stored(i), tensors[i]) : zero(context_, tensors[i]);
    begin += static_cast<int>(tensors.size());
  };
  restore(*net_);
  if (file_.solver.test_epoch()) return;
  for (const auto& net : test_nets_) restore(*net);
}

}  // namespace crema
