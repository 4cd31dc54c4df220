// The blobs of a NetObject: where they are, in which plan.
#include <cstring>

#include "base/error.h"
#include "layers/python_hook.h"
#include "net/plan/arena.h"
#include "python/mode.h"
#include "python/net/net_object.h"

namespace crema::python {

namespace py = pybind11;

// A Python layer keeps its own state.
bool is_filled_outside(const Node& node) {
  return node.layer->traits().keeps_tops && !python_object(*node.layer);
}

// The net's plan, with the inputs in the memory that outlives it.
Plan& NetObject::plan() {
  Plan& plan = net_.plan();
  if (net_.generation() == generation_) return plan;
  node_of_.assign(layers(), -1);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (const int layer : plan.nodes[i].members) node_of_[layer] = static_cast<int>(i);
  }
  if (rows()) place_inputs(plan);
  if (keeps()) fill_constants(plan);
  generation_ = net_.generation();
  for (const NetMap::Blob& entry : map_.blobs) {
    if (rows() && entry.input && entry.versions.size() > 1)
      copy(net_.context(), plan.value(entry.versions.front()), plan.value(entry.versions.back()));
  }
  return plan;
}

void NetObject::place_inputs(Plan& plan) {
  bool moved = false;
  for (const PlanNode& node : plan.nodes) {
    if (!is_filled_outside(node)) continue;
    for (const int id : node.tops) {
      Input& input = inputs_[id];
      const PlanValue& value = plan.values[id];
      const size_t bytes = static_cast<size_t>(value.shape.count()) * sizeof(float);
      std::shared_ptr<Buffer> memory = input.memory.memory();
      if (!memory || memory->bytes() < bytes)
        memory = std::make_shared<Buffer>(net_.context(), bytes);
      if (!input.wanted) input.memory = Tensor(memory, 0, value.shape, DType::f32);
      Storage& storage = plan.storages[value.storage];
      moved = moved || storage.own != memory;
      storage.own = memory;
    }
  }
  if (moved)
    plan.bind(net_.context(), net_.options().arena->buffer(net_.context()), net_.parameters());
}

// DummyData's values, which Caffe has from the start. The program's changes to them stay.
void NetObject::fill_constants(Plan& plan) {
  for (PlanNode& node : plan.nodes) {
    if (node.message.type() != "DummyData") continue;
    const Forward& arguments = node.arguments.forward;
    std::vector<std::vector<float>> before;
    for (size_t j = 0; j < node.tops.size(); ++j) {
      Input& input = inputs_[node.tops[j]];
      before.push_back(rows() ? std::move(input.set) : std::vector<float>());
      if (before.back().size() == static_cast<size_t>(arguments.top[j].count()))
        before.back() = to_floats(net_.context(), arguments.top[j]);
    }
    node.layer->forward(net_.context(), arguments);
    for (size_t j = 0; j < node.tops.size(); ++j) {
      const auto count = static_cast<size_t>(arguments.top[j].count());
      if (before[j].size() == count)
        from_floats(net_.context(), before[j].data(), arguments.top[j]);
      inputs_[node.tops[j]].set.resize(count);
    }
  }
}

// Whether the program writes into a copy of this input. That remains so if the net later stores
// rows.
bool NetObject::is_staged(const NetMap::Blob& entry) const {
  const auto at = inputs_.find(entry.versions.front());
  return !rows() || (at != inputs_.end() && at->second.staged);
}

LoneBlob& NetObject::staged(int blob) {
  const int id = map_.blobs[blob].versions.front();
  Input& input = inputs_[id];
  if (!input.staged) {
    const Tensor now = plan().value(id);
    input.staged = std::make_unique<LoneBlob>(now.shape());
    input.set = to_floats(net_.context(), now);
    std::copy(input.set.begin(), input.set.end(), input.staged->values());
  }
  return *input.staged;
}

Shape NetObject::blob_shape(int blob) {
  const NetLock::Hold hold(lock_);
  const NetMap::Blob& entry = map_.blobs[blob];
  if (entry.input) {
    const auto at = inputs_.find(entry.versions.front());
    if (at != inputs_.end() && at->second.wanted) return *at->second.wanted;
  }
  const DeviceScope scope = enter(net_.context());
  return plan().values[entry.versions.back()].shape;
}

py::array NetObject::blob_data(int blob) {
  const NetLock::Hold hold(lock_);
  const NetMap::Blob& entry = map_.blobs[blob];
  const DeviceScope scope = enter(net_.context());
  if (entry.input && is_staged(entry)) return staged(blob).data();
  if (entry.input && entry.versions.size() > 1 && !running_) {
    const int producer = net_.graph().values[entry.versions.back()].producer;
    apply_reshapes(0, net_.graph().nodes[producer].members.back());
  }
  if (entry.input && entry.versions.size() == 1) {
    plan();
    return show({kData, blob}, inputs_[entry.versions.front()].memory);
  }
  need_blob(blob);
  return show({kData, blob}, value_tensor(blob));
}

// In an in-place chain each gradient overwrites the one after it, as in Caffe: at the end the first
// version's remains.
Tensor NetObject::diff_tensor(int blob) {
  const NetMap::Blob& entry = map_.blobs[blob];
  Plan& now = plan();
  if (entry.split && entry.reader >= 0) {
    const int node = node_of_[entry.reader];
    return node < 0 ? Tensor() : now.nodes[node].arguments.backward.bottom_diff[entry.bottom];
  }
  for (const int id : entry.versions) {
    if (const Tensor diff = now.diff(id)) return diff;
  }
  return {};
}

py::array NetObject::blob_diff(int blob) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  if (!keeps()) {
    require(!planned_, "the gradient of blob \"", map_.blobs[blob].name,
            "\" cannot be seen in a net that was opened with planned=True");
    require(!running_, "blobs cannot be read for the first time while the net runs");
    if (!gradients_can_be_planned(blob)) look_into(true);
  }
  need_gradients();
  const Tensor diff = diff_tensor(blob);
  return diff ? show({kDiff, blob}, diff) : zeros({kDiff, blob}, value_tensor(blob).shape());
}

void NetObject::reshape_blob(int blob, const Shape& shape) {
  const NetLock::Hold hold(lock_);
  const NetMap::Blob& entry = map_.blobs[blob];
  const DeviceScope scope = enter(net_.context());
  if (!entry.input) {
    const Shape now = plan().values[entry.versions.back()].shape;
    require(shape == now, "blob \"", entry.name, "\" has the shape ", now.brief(),
            " that its layer gives it: reshape the net's inputs, then the net");
    return;
  }
  require(shape.count() > 0, "blob \"", entry.name, "\" cannot have the shape ", shape.brief(),
          ": each extent of an input must be at least 1");
  require(!running_, "the net is running: a callback cannot reshape its inputs");
  const Shape now = plan().values[entry.versions.front()].shape;
  const bool is_copy = is_staged(entry);
  if (is_copy) staged(blob).reshape(shape);
  Input& input = inputs_[entry.versions.front()];
  input.wanted.reset();
  if (shape != now) input.wanted = shape;
  if (is_copy) return;
  const size_t bytes = static_cast<size_t>(shape.count()) * sizeof(float);
  std::shared_ptr<Buffer> memory = input.memory.memory();
  if (memory->bytes() < bytes) {
    memory = std::make_shared<Buffer>(net_.context(), bytes);
    copy_bytes(net_.context(), memory->data(), memory->device(), input.memory.raw(),
               input.memory.device(), input.memory.bytes());
  }
  input.memory = Tensor(memory, 0, shape, DType::f32);
}

// The first of these layers that a partial pass has left behind; null: none.
const Node* NetObject::stale_node(int first, int last) const {
  for (const Node& node : net_.graph().nodes) {
    if (node.stale && node.members.back() >= first && node.members.back() <= last) return &node;
  }
  return nullptr;
}

// Before a pass of these layers: they take the shapes that inputs were reshaped to. Layers outside keep
// their shapes and blobs.
void NetObject::apply_reshapes(int first, int last) {
  std::vector<std::pair<std::string, Shape>> wanted;
  for (const int blob : map_.inputs) {
    const auto at = inputs_.find(map_.blobs[blob].versions.front());
    if (at != inputs_.end() && at->second.wanted)
      wanted.emplace_back(map_.blobs[blob].name, *at->second.wanted);
  }
  if (wanted.empty() && !stale_node(first, last)) return;
  write_back();
  has_pass_ = false;
  const auto forget = [&](bool applied) {
    for (auto& [id, input] : inputs_) {
      input.wanted.reset();
      if (input.staged) input.set.clear();
      if (!applied && input.memory)
        input.memory = Tensor(input.memory.memory(), 0, {1}, DType::f32);
    }
    generation_ = ~uint64_t{0};
  };
  std::vector<Tensor> old;
  if (keeps()) {
    for (size_t id = 0; id < net_.graph().values.size(); ++id)
      old.push_back(plan().value(static_cast<int>(id)));
  }
  std::map<int, std::vector<float>> kept;  // blobs whose shapes stay keep what they hold
  const Net::Shapes before = net_.shapes();
  try {
    net_.reshape(wanted, first, last);
    for (size_t id = 0; id < old.size(); ++id) {
      if (old[id] && net_.graph().values[id].shape == old[id].shape())
        kept[static_cast<int>(id)] = to_floats(net_.context(), old[id]);
    }
    old.clear();
    net_.plan();
  } catch (...) {
    net_.restore(before);
    forget(false);
    for (auto& [id, input] : inputs_) {
      if (input.staged) input.staged->reshape(plan().values[id].shape);
    }
    plan();
    throw;
  }
  forget(true);
  Plan& now = plan();
  for (const auto& [id, values] : kept) from_floats(net_.context(), values.data(), now.value(id));
}

void NetObject::set_inputs() {
  for (const int blob : map_.inputs) {
    const auto at = inputs_.find(map_.blobs[blob].versions.front());
    if (at == inputs_.end() || !at->second.staged || at->second.wanted) continue;
    Input& input = at->second;
    const auto count = static_cast<size_t>(input.staged->shape().count());
    const float* const values = input.staged->values();
    if (input.set.size() == count &&
        std::memcmp(input.set.data(), values, count * sizeof(float)) == 0)
      continue;
    net_.set_input(map_.blobs[blob].name, values);
    input.set.assign(values, values + count);
  }
}

py::array NetObject::parameter_data(int parameter, const Shape& shape) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  write_back_others();
  const Tensor& data = net_.parameters()[parameter].data;
  return show({kParameter, parameter}, shape == data.shape() ? data : data.reshaped(shape));
}

py::array NetObject::parameter_diff(int parameter, const Shape& shape) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  need_gradients();
  const Tensor& diff = net_.parameters()[parameter].diff;
  if (!diff) return zeros({kParameterDiff, parameter}, shape);
  return show({kParameterDiff, parameter}, shape == diff.shape() ? diff : diff.reshaped(shape));
}

}  // namespace crema::python
