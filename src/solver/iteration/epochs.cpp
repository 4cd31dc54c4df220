#include "solver/iteration/epochs.h"

#include <algorithm>

#include "kernels/pointwise/add.h"
#include "solver/ranks/ranks.h"
#include "tensor/part.h"

namespace crema {

Epochs::Epochs(Net& net, const EpochLength& length, int iter_size, int64_t max_iter)
    : net_(net),
      length_(length),
      iter_size_(iter_size),
      epochs_((max_iter * length.per_update + length.records / 2) / length.records) {
  for (const Net::Output& output : net.outputs()) {
    means_.push_back({output.blob, output.loss_weight, {}, output.parts});
    if (output.value.count() != 1) continue;
    means_.back().sum = Tensor(net.context(), output.value.shape(), DType::f32);
    if (output.count) means_.back().count = Tensor(net.context(), Shape{1}, DType::f32);
  }
  begin(0);
}

bool Epochs::ends_after(int64_t updates) const {
  return updates > 0 && length_.epochs_after(updates) > length_.epochs_after(updates - 1);
}

void Epochs::add() {
  auto mean = means_.begin();
  for (const Net::Output& output : net_.outputs()) {
    if (mean == means_.end()) return;
    Context& context = net_.context();
    if (mean->count) {
      add_product(context, output.value, part(output.count, {1}, 0), mean->sum);
      add_to(context, part(output.count, {1}, 1), mean->count);
    } else if (mean->sum) {
      add_to(context, output.value, mean->sum);
    }
    ++mean;
  }
}

void Epochs::begin(int64_t updates) {
  for (const Mean& mean : means_) {
    if (mean.sum) zero(net_.context(), mean.sum);
    if (mean.count) zero(net_.context(), mean.count);
  }
  begun_ = updates;
  begun_at_ = Clock::now();
}

event::Epoch Epochs::end(int64_t updates, const std::vector<OutputValue>& test) {
  event::Epoch epoch{length_.epochs_after(updates), epochs_, updates, 0, {}, test};
  const auto passes = static_cast<float>((updates - begun_) * iter_size_);
  std::vector<RankValue> values;
  for (const Mean& mean : means_) {
    values.push_back({{}, mean.parts});
    if (!mean.sum) continue;
    const float sum = to_floats(net_.context(), mean.sum)[0];
    const float count = mean.count ? to_floats(net_.context(), mean.count)[0] : passes;
    const float divisor = std::max(count, 1.f);
    values.back() = {sum / divisor, mean.parts, divisor, count};
  }
  combine_over_ranks(net_, values);
  for (size_t i = 0; i < means_.size(); ++i) {
    const std::optional<double>& value = values[i].value;
    if (value)
      epoch.train.push_back({means_[i].blob, static_cast<float>(*value), means_[i].loss_weight});
  }
  epoch.seconds = std::chrono::duration<double>(Clock::now() - begun_at_).count();
  begin(updates);
  return epoch;
}

}  // namespace crema
