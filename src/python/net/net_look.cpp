// A planned NetObject starts to keep the blobs that the program reads.
//
// A standalone net that is used as a whole is planned like the programs' nets. The plan keeps the
// first inner blobs that the program reads, and stays fast. A program that reads more, runs a part
// of a pass or asks for gradients gets a net that keeps every blob, row-major, so that arrays are
// views. Whole backward passes of a net with force_backward are planned, too, as long as the
// program reads only the gradients of inputs, outputs and parameters. Each time the last pass is
// repeated with its own inputs and weights: the plan keeps them until the next pass, because the
// program's changes go into copies (Input::staged, mirrors_) until then.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "layers/python_hook.h"
#include "python/gil.h"
#include "python/mode.h"
#include "python/net/net_object.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// A new plan for each blob costs a pass: a program that reads more of them will read all.
constexpr int kFewBlobs = 3;

}  // namespace

void NetObject::look_into(bool gradients) {
  plan_again([&] { net_.look_into(gradients, lazy_); });
  lazy_ = has_pass_ = false;
  went_backward_ = false;
  seeds_.clear();
  weights_of_last_pass_.clear();
}

// For a lazy net.
void NetObject::look_at(int blob) {
  const int id = map_.blobs[blob].versions.back();
  const Value& value = net_.graph().values[id];
  if (value.keep) return;
  // The program's writes to the top of a source are the net's input.
  const bool is_source = net_.graph().nodes[value.producer].bottoms.empty();
  if (is_source || ++looks_ > kFewBlobs) return look_into(false);
  plan_again([&] { net_.keep_value(id); });
}

// Their objects are not called in a pass that is repeated as it was.
void NetObject::repeat_python_layers(bool on) {
  for (const Node& node : net_.graph().nodes) repeat_python(*node.layer, on);
}

// `change` makes the net drop its plan. Carries over the content of the blobs.
void NetObject::plan_again(const std::function<void()>& change) {
  Plan& old = plan();
  if (!lazy_) write_back();
  const ReleaseGil release;
  Context& context = net_.context();
  const bool all = keeps();
  std::map<int, std::vector<float>> kept;
  for (const PlanNode& node : old.nodes) {
    // Constants are there from the first pass on.
    const bool filled = is_filled_outside(node) && (*passes_ > 0 || node.message.type() == "Input");
    if (!filled && (!all || node.message.type() == "Reorder")) continue;
    for (const int id : node.tops) kept[id] = to_floats(context, old.value(id));
  }
  std::map<int, std::vector<float>> diffs;  // that a program may have written or still read
  for (const NetMap::Blob& entry : map_.blobs) {
    const int id = entry.versions.front();
    if (lazy_ && (entry.input || entry.output) && old.diff(id))
      diffs[id] = to_floats(context, old.diff(id));
  }
  std::vector<std::vector<float>> results;
  for (const Net::Output& output : net_.outputs())
    results.push_back(to_floats(context, output.value));
  std::erase_if(mirrors_, [&](const auto& entry) {
    return entry.second.unseen() && !(lazy_ && entry.second.changed());
  });
  repeat_python_layers(has_pass_);
  change();
  Plan& now = plan();
  const auto restore = [&] {
    for (const auto& [id, values] : kept) from_floats(context, values.data(), now.value(id));
  };
  restore();
  if (lazy_ ? has_pass_ : *passes_ + partial_passes_ > 0) {
    repeat_last_pass();
    if (all) {
      restore();  // the pass was for what backward reads besides
    } else {
      // A solver has changed the weights since: loss and accuracy keep their values.
      const std::vector<Net::Output> outputs = net_.outputs();
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (results[i].size() == static_cast<size_t>(outputs[i].value.count()))
          from_floats(context, results[i].data(), outputs[i].value);
      }
    }
  }
  if (has_pass_ && went_backward_) repeat_backward();
  repeat_python_layers(false);
  for (const auto& [id, values] : diffs) {
    if (const Tensor diff = now.diff(id)) from_floats(context, values.data(), diff);
  }
  if (!lazy_) return context.synchronize();
  if (!keeps()) return;
  // The program's changes since the pass; inputs wait for the next one.
  write_back_weights();
  for (auto& [key, mirror] : mirrors_) {
    const Tensor to = key.first == kData || key.first == kDiff ? tensor(key) : Tensor();
    if (to) mirror.write_back(context, to);
  }
}

// So that the blobs that a program starts to read are those of the last pass. Running statistics do
// not count it twice.
void NetObject::repeat_last_pass() {
  Context& context = net_.context();
  std::vector<std::pair<Tensor, std::vector<float>>> statistics;
  for (const Parameter& parameter : net_.parameters()) {
    if (!parameter.learned)
      statistics.emplace_back(parameter.data, to_floats(context, parameter.data));
  }
  swap_weights();
  const uint64_t pass = *passes_ > 0 ? *passes_ - 1 : 0;
  keeps() ? net_.forward_layers(pass, 0, layers() - 1) : net_.forward(pass);
  swap_weights();
  for (const auto& [data, values] : statistics) from_floats(context, values.data(), data);
  net_.parameters_changed();
}

// Exchanges the current values for those of the last pass, if they differ.
void NetObject::swap_weights() {
  for (auto& [parameter, values] : weights_of_last_pass_) {
    const Tensor& data = net_.parameters()[parameter].data;
    std::vector<float> now = to_floats(net_.context(), data);
    from_floats(net_.context(), values.data(), data);
    values = std::move(now);
  }
  net_.parameters_changed();
}

void NetObject::need_blob(int blob) {
  const NetMap::Blob& entry = map_.blobs[blob];
  if (keeps() || entry.output) return;
  if (planned_)
    fail("blob \"", entry.name,
         "\" is neither input nor output of a net that was opened with "
         "planned=True, so its memory is used again: open the net without it");
  if (lazy_ && net_.graph().values[entry.versions.back()].keep) return;
  require(!running_, "blob \"", entry.name,
          "\" cannot be read for the first time while the net "
          "runs: read it once before");
  lazy_ ? look_at(blob) : look_into(false);
}

// The gradients that the last backward pass has left inside; those of parameters do not count it twice.
void NetObject::repeat_backward() {
  Context& context = net_.context();
  std::vector<std::pair<Tensor, std::vector<float>>> kept;
  for (const Parameter& parameter : net_.parameters()) {
    if (parameter.diff) kept.emplace_back(parameter.diff, to_floats(context, parameter.diff));
  }
  for (const auto& [id, values] : seeds_) from_floats(context, values.data(), plan().diff(id));
  swap_weights();
  keeps() ? run_backward(layers() - 1, 0, ReLURule::derivative) : net_.backward(true);
  swap_weights();
  for (const auto& [diff, values] : kept) from_floats(context, values.data(), diff);
}

// For a blob of a lazy net.
bool NetObject::gradients_can_be_planned(int blob) const {
  const NetMap::Blob& entry = map_.blobs[blob];
  return lazy_ && plans_gradients_ && (entry.input || entry.output) && !entry.split &&
         entry.versions.size() == 1 && entry.loss_weight == 0;
}

// Whether a backward pass with the current values would differ from one right after the pass.
bool NetObject::changed_since_pass() const {
  for (const auto& [id, input] : inputs_) {
    if (!input.staged) continue;
    const auto count = static_cast<size_t>(input.staged->shape().count());
    if (input.wanted || input.set.size() != count ||
        std::memcmp(input.set.data(), input.staged->values(), count * sizeof(float)) != 0)
      return true;
  }
  return !weights_of_last_pass_.empty() ||
         std::any_of(mirrors_.begin(), mirrors_.end(), [](const auto& entry) {
           return (entry.first.first == kData || entry.first.first == kParameter) &&
                  entry.second.changed();
         });
}

void NetObject::need_gradients() {
  if (net_.plan().options.backward) return;
  require(!planned_,
          "a net that was opened with planned=True in phase TEST computes no gradients: "
          "open it without planned, or in phase TRAIN");
  require(!running_, "gradients cannot be asked for the first time while the net runs");
  if (!lazy_ || !plans_gradients_) return look_into(true);
  plan_again([&] { net_.plan_gradients(); });
}

}  // namespace crema::python
