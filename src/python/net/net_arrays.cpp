// The program's access to a NetObject's memory: views if NumPy can use it directly, otherwise
// mirrors.
#include "device/device_scope.h"
#include "python/mode.h"
#include "python/net/net_object.h"

namespace crema::python {

namespace py = pybind11;

py::array NetObject::show(const Key& key, const Tensor& tensor) {
  const auto at = mirrors_.find(key);
  // Once the program has a copy, it keeps seeing that.
  const bool held = at != mirrors_.end() && !at->second.unseen();
  if (is_plain(tensor) && !lazy_ && !held) {
    weights_shown_ = weights_shown_ || key.first == kParameter;
    return view_of(tensor);
  }
  // Each run has refreshed it, and the program's changes to it wait for the next.
  if (lazy_ && at != mirrors_.end() && at->second.count() == tensor.count())
    return at->second.view(tensor.shape());
  if (lazy_) drop_mirrors();
  return mirrors_[key].read(net_.context(), tensor);
}

// Frees the copies that no array shows. Changed weights go into the net before.
void NetObject::drop_mirrors() {
  write_back_weights();
  std::erase_if(mirrors_,
                [](const auto& entry) { return entry.second.unseen() && !entry.second.changed(); });
}

// After a run: arrays that are copies get the results, as views do.
void NetObject::refresh_mirrors() {
  if (mirrors_.empty() || net_.context().device() != Device::cpu) return;
  for (auto& [key, mirror] : mirrors_) {
    if (key.first == kParameter && net_.parameters()[key.second].learned) continue;
    if (const Tensor from = tensor(key)) mirror.read(net_.context(), from);
  }
}

py::array NetObject::zeros(const Key& key, const Shape& shape) {
  auto& values = zeros_[key];
  if (!values || values->size() != static_cast<size_t>(shape.count()))
    values = std::make_shared<std::vector<float>>(shape.count());
  return view_of(values->data(), shape, values);
}

Tensor NetObject::tensor(const Key& key) {
  switch (key.first) {
    case kData: {
      const NetMap::Blob& entry = map_.blobs[key.second];
      if (entry.input && entry.versions.size() == 1 && rows())
        return inputs_[entry.versions.front()].memory;
      return value_tensor(key.second);
    }
    case kDiff:
      return diff_tensor(key.second);
    case kParameter:
      return net_.parameters()[key.second].data;
    default:
      return net_.parameters()[key.second].diff;
  }
}

Tensor NetObject::blob_tensor(int blob, bool diff) {
  const NetLock::Hold hold(lock_);
  if (net_.context().device() == Device::cpu) return {};
  const DeviceScope scope = enter(net_.context());
  if (diff) need_gradients();
  need_blob(blob);
  plan();  // inputs have their memory from it
  return lend({diff ? kDiff : kData, blob});
}

Tensor NetObject::parameter_tensor(int parameter, bool diff) {
  const NetLock::Hold hold(lock_);
  if (net_.context().device() == Device::cpu) return {};
  const DeviceScope scope = enter(net_.context());
  if (diff) need_gradients();
  return lend({diff ? kParameterDiff : kParameter, parameter});
}

Tensor NetObject::lend(const Key& key) {
  write_back();
  net_.context().synchronize();
  lent_ = true;
  lent_weights_ = lent_weights_ || key.first == kParameter;
  return tensor(key);
}

void NetObject::write_back() {
  const NetLock::Hold hold(lock_);
  write_back_others();
  if (weights_shown_) weights_changed();
  if (lock_->nets.size() > 1) net_.parameters_updated();  // by the others' passes
  if (mirrors_.empty() && inputs_.empty() && !lent_) return;
  const DeviceScope scope = enter(net_.context());
  set_inputs();
  write_back_weights();
  for (auto& [key, mirror] : mirrors_) {
    const Tensor to = key.first == kParameter ? Tensor() : tensor(key);
    if (to) mirror.write_back(net_.context(), to);
  }
  std::erase_if(mirrors_, [](const auto& entry) { return entry.second.unseen(); });
}

void NetObject::write_back_weights() {
  if (weights_shown_) weights_changed();
  if (mirrors_.empty() && !lent_) return;
  const DeviceScope scope = enter(net_.context());
  if (lent_) wait_for_gpu();
  bool changed = lent_weights_;
  for (auto& [key, mirror] : mirrors_) {
    std::vector<float> before;
    if (key.first != kParameter || !mirror.write_back(net_.context(), tensor(key), &before))
      continue;
    changed = true;
    if (has_pass_) weights_of_last_pass_.try_emplace(key.second, std::move(before));
  }
  if (changed) weights_changed();
}

// Each net may have copies of them, or own those of another.
void NetObject::weights_changed() {
  for (NetObject* const net : lock_->nets) net->net_.parameters_changed();
}

void NetObject::write_back_others() {
  for (NetObject* const net : lock_->nets) {
    if (net != this) net->write_back_weights();
  }
}

void NetObject::read_back() {
  if (mirrors_.empty() || net_.context().device() != Device::cpu) return;
  for (auto& [key, mirror] : mirrors_) {
    if (const Tensor from = tensor(key)) mirror.read(net_.context(), from);
  }
}

}  // namespace crema::python
