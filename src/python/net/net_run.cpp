// The passes of a NetObject, whole and in part.
//
// Caffe's in-place layers overwrite a blob; here each writes its own version, so that backward
// finds what it needs. A program sees one blob: in a whole pass the memory of the last version (of
// the first version's gradient). A part of a pass copies its results there, and reads its inputs
// from there, so all parts read and write the same as in Caffe.
#include <algorithm>

#include "base/error.h"
#include "python/gil.h"
#include "python/mode.h"
#include "python/net/net_object.h"

namespace crema::python {

namespace py = pybind11;

// Separate from the numbers of whole passes, which determine what data layers read.
constexpr uint64_t kPartialPasses = uint64_t{1} << 62;

class NetObject::Running {
 public:
  explicit Running(NetObject& net) : hold_(net.lock_), net_(net) {
    require(!net.running_, "the net is running already: its callbacks and layers cannot run it");
    net.running_ = true;
  }
  ~Running() { net_.running_ = false; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const NetLock::Hold hold_;
  NetObject& net_;
};

void NetObject::before_run(int first, int last, bool forward) {
  const char* const what = forward ? "forward" : "backward";
  const int low = std::min(first, last), high = std::max(first, last);
  require(low >= 0 && high < layers(), what, ": layers ", first, " to ", last,
          ", but the net has layers 0 to ", layers() - 1);
  if (!keeps() && !whole(low, high)) {
    require(!planned_, what, ": a net that was opened with planned=True runs as a whole only");
    look_into(false);
  }
  // As in Caffe, where each layer takes the shapes of its bottoms as it runs.
  if (forward) apply_reshapes(first, last);
  if (const Node* const stale = stale_node(low, high))
    fail(what, ": layer \"", stale->message.name(),
         "\" has not run forward since an input before it was reshaped");
  plan();
  has_pass_ = false;  // what it read is overwritten
  went_backward_ = false;
  weights_of_last_pass_.clear();
  write_back();
}

uint64_t NetObject::next_pass(int first, int last) {
  const auto reads = [](const NetMap::Layer& layer) {
    return layer.source && layer.type != "Input";
  };
  const auto begin = map_.layers.begin();
  if (whole(first, last) || std::any_of(begin + first, begin + last + 1, reads))
    return (*passes_)++;
  return kPartialPasses + partial_passes_++;
}

double NetObject::forward(int first, int last) {
  const Running running(*this);
  if (first > last) return 0;
  const DeviceScope scope = enter(net_.context());
  before_run(first, last, true);
  const uint64_t pass = next_pass(first, last);
  if (callbacks_[before_forward].empty() && callbacks_[after_forward].empty()) {
    double result = 0;
    {
      const ReleaseGil release;
      run_forward(pass, first, last);
      result = loss(first, last);
    }
    has_pass_ = lazy_;
    refresh_mirrors();
    return result;
  }
  if (!keeps()) look_into(false);
  for (int layer = first; layer <= last; ++layer) {
    call(before_forward, layer);
    write_back();
    {
      const ReleaseGil release;
      run_forward(pass, layer, layer);
    }
    refresh_mirrors();
    call(after_forward, layer);
  }
  return loss(first, last);
}

void NetObject::run_forward(uint64_t pass, int first, int last) {
  if (whole(first, last)) {
    // For an input that a layer overwrites, the program sees that layer's result.
    for (const int blob : map_.inputs) {
      const std::vector<int>& versions = map_.blobs[blob].versions;
      if (versions.size() > 1 && rows())
        copy(net_.context(), plan().value(versions.back()), plan().value(versions.front()));
    }
    return net_.forward(pass);
  }
  enter_forward(first, last);
  net_.forward_layers(pass, first, last);
  leave_forward(first, last);
}

void NetObject::backward(int first, int last, ReLURule rule) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  if (lazy_ && !running_) {
    // A planned backward pass overwrites the blobs that another one would read.
    const bool planned = plans_gradients_ && whole(last, first) && rule == ReLURule::derivative &&
                         callbacks_[before_backward].empty() &&
                         callbacks_[after_backward].empty() && has_pass_ && !went_backward_ &&
                         !changed_since_pass();
    planned ? need_gradients() : look_into(true);
  } else if (!running_) {
    need_gradients();
  }
  const Running running(*this);
  if (first < last) return;
  if (lazy_) return backward_planned();
  before_run(first, last, false);
  if (!keeps() && rule != ReLURule::derivative) look_into(true);
  if (!keeps()) {
    {
      const ReleaseGil release;
      net_.backward(true);
      net_.context().synchronize();
    }
    return refresh_mirrors();
  }
  if (callbacks_[before_backward].empty() && callbacks_[after_backward].empty()) {
    {
      const ReleaseGil release;
      run_backward(first, last, rule);
      net_.context().synchronize();
    }
    return refresh_mirrors();
  }
  for (int layer = first; layer >= last; --layer) {
    call(before_backward, layer);
    write_back();
    {
      const ReleaseGil release;
      run_backward(layer, layer, rule);
    }
    refresh_mirrors();
    call(after_backward, layer);
  }
}

// For a lazy net: its last pass can still be repeated, and then so can this one.
void NetObject::backward_planned() {
  Plan& now = plan();
  seeds_.clear();
  for (auto& [key, mirror] : mirrors_) {
    const Tensor to = key.first == kParameter || key.first == kData ? Tensor() : tensor(key);
    if (to) mirror.write_back(net_.context(), to);
  }
  {
    const ReleaseGil release;
    for (const int id : now.outputs) {
      if (now.values[id].loss_weight == 0 && now.diff(id))
        seeds_[id] = to_floats(net_.context(), now.diff(id));
    }
    net_.backward(true);
    // A layer may overwrite the gradient that it starts from; a program must find its own values
    // there.
    for (const auto& [id, values] : seeds_)
      from_floats(net_.context(), values.data(), now.diff(id));
    net_.context().synchronize();
  }
  went_backward_ = true;
  refresh_mirrors();
}

void NetObject::run_backward(int first, int last, ReLURule rule) {
  // A layer may overwrite the gradient that it starts from; a program must find its own values
  // there.
  std::vector<std::pair<Tensor, Tensor>> kept;
  Plan& now = plan();
  enter_backward(first, last);
  for (const int id : diffs_from_outside(first, last)) {
    const Tensor diff = now.diff(id);
    const PlanValue& value = now.values[id];
    if (value.loss_weight != 0) continue;
    const Tensor copied(net_.context(), diff.shape(), diff.dtype(), diff.format());
    copy(net_.context(), diff, copied);
    kept.emplace_back(diff, copied);
  }
  net_.backward_layers(first, last, [&](const PlanNode& node) { return rectify(node, rule); });
  for (const auto& [diff, copied] : kept) copy(net_.context(), copied, diff);
  leave_backward(first, last);
}

// Replaces a ReLU's backward. False: run the layer's own.
bool NetObject::rectify(const PlanNode& node, ReLURule rule) {
  if (rule == ReLURule::derivative || node.message.type() != "ReLU") return false;
  const Tensor& to = node.arguments.backward.bottom_diff[0];
  if (!to) return true;
  Context& context = net_.context();
  std::vector<float> diff = to_floats(context, node.arguments.backward.top_diff[0]);
  if (rule == ReLURule::guided) {
    const std::vector<float> top = to_floats(context, node.arguments.forward.top[0]);
    for (size_t i = 0; i < diff.size(); ++i) diff[i] = top[i] > 0 ? diff[i] : 0;
  }
  for (float& value : diff) value = std::max(value, 0.0F);
  from_floats(context, diff.data(), to);
  return true;
}

void NetObject::call(Moment moment, int layer) {
  // By index: a callback may add another.
  const py::int_ index(layer);
  for (size_t i = 0; i < callbacks_[moment].size(); ++i) {
    const py::function callback = callbacks_[moment][i];  // which may move with the list
    call_python(callback, {index.ptr()});
  }
}

double NetObject::loss(int first, int last) {
  net_.check();
  Plan& now = plan();
  double total = 0;
  for (size_t id = 0; id < now.values.size(); ++id) {
    const PlanValue& value = now.values[id];
    if (value.loss_weight == 0) continue;
    const PlanNode& node = now.nodes[value.producer];
    if (!node.members.empty() && (node.members.back() < first || node.members.back() > last))
      continue;
    const Tensor tensor = now.value(static_cast<int>(id));
    double sum = 0;
    if (is_plain(tensor)) {
      for (int64_t n = 0; n < tensor.count(); ++n) sum += tensor.data<float>()[n];
    } else {
      for (const double element : to_doubles(net_.context(), tensor)) sum += element;
    }
    total += value.loss_weight * sum;
  }
  return total;
}

// --- versions of blobs ---

void NetObject::enter_forward(int first, int last) {
  Plan& now = plan();
  for (int layer = first; layer <= last; ++layer) {
    const Graph::View& view = net_.graph().views[layer];
    for (size_t j = 0; j < view.bottoms.size(); ++j) {
      const std::vector<int>& versions = map_.blobs[map_.layers[layer].bottoms[j]].versions;
      const int id = view.bottoms[j];
      const PlanNode& producer = now.nodes[now.values[id].producer];
      if (versions.back() == id || producer.members.back() >= first) continue;
      copy(net_.context(), now.value(versions.back()), now.value(id));
    }
  }
}

void NetObject::leave_forward(int first, int last) {
  Plan& now = plan();
  for (int layer = first; layer <= last; ++layer) {
    const Graph::View& view = net_.graph().views[layer];
    for (size_t j = 0; j < view.tops.size(); ++j) {
      const std::vector<int>& versions = map_.blobs[map_.layers[layer].tops[j]].versions;
      const auto at = std::find(versions.begin(), versions.end(), view.tops[j]);
      if (at + 1 == versions.end()) continue;
      // The next version is written in this range, too.
      const PlanNode& next = now.nodes[now.values[*(at + 1)].producer];
      if (next.members.back() <= last) continue;
      copy(net_.context(), now.value(view.tops[j]), now.value(versions.back()));
    }
  }
}

// The values made in the range whose gradients no layer of the range computes.
std::vector<int> NetObject::diffs_from_outside(int first, int last) {
  Plan& now = plan();
  std::vector<char> inside(now.values.size(), 0);
  for (int layer = last; layer <= first; ++layer) {
    if (node_of_[layer] < 0) continue;
    const PlanNode& node = now.nodes[node_of_[layer]];
    for (size_t j = 0; j < node.bottoms.size(); ++j) {
      if (!node.backward || !node.propagate[j]) continue;
      inside[node.bottoms[j]] = 1;
      const PlanNode& producer = now.nodes[now.values[node.bottoms[j]].producer];
      if (producer.members.empty()) inside[producer.bottoms[0]] = 1;  // a conversion
    }
  }
  std::vector<int> outside;
  for (int layer = last; layer <= first; ++layer) {
    if (node_of_[layer] < 0) continue;
    const PlanNode& node = now.nodes[node_of_[layer]];
    if (!node.backward) continue;
    for (const int id : node.tops) {
      if (!inside[id] && now.diff(id)) outside.push_back(id);
    }
  }
  return outside;
}

void NetObject::enter_backward(int first, int last) {
  Plan& now = plan();
  for (const int id : diffs_from_outside(first, last)) {
    const Tensor shown = diff_tensor(map_.blob_named.at(now.values[id].blob));
    const Tensor diff = now.diff(id);
    if (shown && shown.raw() != diff.raw()) copy(net_.context(), shown, diff);
  }
}

void NetObject::leave_backward(int first, int last) {
  Plan& now = plan();
  for (int layer = first; layer >= last; --layer) {
    const Graph::View& view = net_.graph().views[layer];
    for (size_t j = 0; j < view.bottoms.size(); ++j) {
      const int blob = map_.layers[layer].bottoms[j];
      if (map_.blobs[blob].versions.size() < 2 || map_.blobs[blob].split) continue;
      const Tensor diff = now.diff(view.bottoms[j]);
      const Tensor shown = diff_tensor(blob);
      const PlanNode& producer = now.nodes[now.values[view.bottoms[j]].producer];
      // Its in-place producer runs in this range, too, and overwrites it.
      if (!diff || diff.raw() == shown.raw() || producer.members.back() >= last) continue;
      copy(net_.context(), diff, shown);
    }
  }
}

}  // namespace crema::python
