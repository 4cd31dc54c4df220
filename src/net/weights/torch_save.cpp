#include <cstring>
#include <set>

#include "base/error.h"
#include "net/weights/safetensors.h"
#include "net/weights/torch_input.h"
#include "net/weights/torch_layout.h"
#include "net/weights/torch_weights.h"

namespace crema {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class TorchSaver {
 public:
  TorchSaver(Net& net, const WeightNames& names, const std::optional<TorchInput>& input)
      : net_(net), names_(names), input_(input) {}

  TorchReport run(const std::string& path) {
    if (input_) input_layers_ = layers_reading(net_, input_->blob);
    for (const WeightNames::Pair& pair : names_.pairs)
      add(torch_module(net_, names_, pair, nullptr), pair);
    for (const Parameter& parameter : net_.parameters())
      require(saved_.count(&parameter) > 0, "the map of names (-names) has no pair for ",
              parameter.layer, "[", parameter.index, "]; does it need another -set?");
    write_safetensors(path, std::move(tensors_));
    return std::move(report_);
  }

 private:
  const Parameter& parameter(const TorchSlot& slot) const {
    return net_.parameters()[net_.graph().views[slot.layer].parameters[slot.index]];
  }
  std::vector<float> values(const TorchSlot& slot) const {
    return to_floats(net_.context(), parameter(slot).data);
  }

  void add(const TorchModule& module, const WeightNames::Pair& pair) {
    if (input_layers_.count(module.layer) > 0 && !names_.mean.empty()) {
      add_input_layer(module);
    } else {
      for (const TorchSlot& slot : module.slots)
        add(slot, [this, slot, norm = module.norm && slot.layer == module.layer] {
          return bytes_of(norm ? statistics(slot) : values(slot));
        });
    }
    if (!module.norm) return;
    saved_.insert(&parameter({"", module.layer, 2}));
    const std::string counter = pair.from + ".num_batches_tracked";
    tensors_.push_back(
        {counter, {"I64", Shape()}, [] { return std::string(sizeof(int64_t), '\0'); }});
    report_.unused.push_back(counter);
  }

  // Caffe keeps sums, and their weight.
  std::vector<float> statistics(const TorchSlot& slot) const {
    const float weight = values({"", slot.layer, 2})[0];
    std::vector<float> sums = values(slot);
    for (float& value : sums) value = weight == 0 ? 0 : value / weight;
    return sums;
  }

  void add_input_layer(const TorchModule& module) {
    std::vector<float> weight = values(module.slots[0]), bias;
    if (module.slots.size() > 1) bias = values(module.slots[1]);
    report_.notes.push_back(unfold_input(net_.graph().net.layer(module.layer),
                                         parameter(module.slots[0]).shape, names_, *input_, &weight,
                                         &bias));
    add(module.slots[0], [weight] { return bytes_of(weight); });
    if (!bias.empty()) add(module.slots[1], [bias] { return bytes_of(bias); });
  }

  void add(const TorchSlot& slot, std::function<std::string()> bytes) {
    const Parameter& from = parameter(slot);
    Shape shape = from.shape;
    if (shape.axes() == 0) shape = Shape({1});  // as PyTorch's PReLU with one slope
    saved_.insert(&from);
    report_.rows.push_back({slot.tensor, shown_parameter(net_, slot), shape.brief()});
    tensors_.push_back({slot.tensor, {"F32", shape}, std::move(bytes)});
  }

  Net& net_;
  const WeightNames& names_;
  const std::optional<TorchInput>& input_;
  std::set<int> input_layers_;
  std::set<const Parameter*> saved_;
  std::vector<SafetensorsEntry> tensors_;
  TorchReport report_;
};

}  // namespace

TorchReport save_torch_weights(Net& net, const WeightNames& names,
                               const std::optional<TorchInput>& input, const std::string& path) {
  return TorchSaver(net, names, input).run(path);
}

}  // namespace crema
