#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/visible.h"
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
    where_ = pair.where;
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
    std::vector<int64_t> dims(static_cast<size_t>(slot.leading_ones), 1);
    dims.insert(dims.end(), from.shape.dims().begin(), from.shape.dims().end());
    dims.insert(dims.end(), static_cast<size_t>(slot.trailing_ones), 1);
    if (dims.empty()) dims = {1};  // as PyTorch's PReLU with one slope
    saved_.insert(&from);
    check_name(slot);
    report_.rows.push_back({slot.tensor, shown_parameter(net_, slot), from.shape.brief()});
    if (slot.parts > 1) {
      add_part(slot, dims, std::move(bytes));
    } else {
      tensors_.push_back({slot.tensor, {"F32", Shape(dims)}, std::move(bytes)});
    }
  }

  // A tensor is one parameter, or has parts of one shape, each once.
  void check_name(const TorchSlot& slot) {
    const auto [at, is_new] = first_.emplace(slot.tensor, slot);
    const TorchSlot& first = at->second;
    const Shape &shape = parameter(slot).shape, &other = parameter(first).shape;
    const std::string what = cat(where_, ": tensor \"", visible(slot.tensor), "\" of ",
                                 visible(shown_parameter(net_, slot)));
    require(slot.parts == 1 || shape.axes() > 0, what, " has parts, but the parameter has no rows");
    if (is_new) {
      taken_[slot.tensor].insert(slot.part);
      return;
    }
    require(slot.parts > 1 && slot.parts == first.parts, what, " is already that of ",
            visible(shown_parameter(net_, first)),
            "; expected another name, or equal parts of it, such as in_proj_weight:0:3");
    require(taken_[slot.tensor].insert(slot.part).second, what, ": part ", slot.part,
            " of it is already that of another parameter");
    require(shape == other && slot.leading_ones == first.leading_ones &&
                slot.trailing_ones == first.trailing_ones,
            what, ": the part has shape ", shape.brief(), ", that of ",
            visible(shown_parameter(net_, first)), " has ", other.brief(),
            "; expected parts of one shape");
  }

  // Parts that are not added are zero.
  void add_part(const TorchSlot& slot, std::vector<int64_t> dims,
                std::function<std::string()> bytes) {
    const bool is_new = parts_.find(slot.tensor) == parts_.end();
    const auto part_bytes = static_cast<size_t>(parameter(slot).shape.count()) * sizeof(float);
    const auto parts =
        is_new ? std::make_shared<Parts>(static_cast<size_t>(slot.parts)) : parts_[slot.tensor];
    parts->at(static_cast<size_t>(slot.part)) = std::move(bytes);
    if (!is_new) return;
    parts_[slot.tensor] = parts;
    dims[static_cast<size_t>(slot.leading_ones)] *= slot.parts;
    tensors_.push_back({slot.tensor, {"F32", Shape(dims)}, [parts, part_bytes] {
                          std::string all;
                          for (const auto& part : *parts)
                            all += part ? part() : std::string(part_bytes, '\0');
                          return all;
                        }});
  }

  using Parts = std::vector<std::function<std::string()>>;
  Net& net_;
  const WeightNames& names_;
  const std::optional<TorchInput>& input_;
  std::set<int> input_layers_;
  std::set<const Parameter*> saved_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string, std::shared_ptr<Parts>> parts_;  // of tensors with several parameters
  std::string where_;                                    // the pair that is added
  std::map<std::string, TorchSlot> first_;               // of a tensor's name
  std::map<std::string, std::set<int>> taken_;           // parts of it
  TorchReport report_;
};

}  // namespace

TorchReport save_torch_weights(Net& net, const WeightNames& names,
                               const std::optional<TorchInput>& input, const std::string& path) {
  return TorchSaver(net, names, input).run(path);
}

}  // namespace crema
