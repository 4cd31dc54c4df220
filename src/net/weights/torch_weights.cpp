#include "net/weights/torch_weights.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/visible.h"
#include "net/weights/torch_input.h"
#include "net/weights/torch_layout.h"

namespace crema {
namespace {

// Extents of 1 say nothing: a bias may be 64 or 1x64x1x1.
std::vector<int64_t> essential(const Shape& shape) {
  std::vector<int64_t> dims;
  std::copy_if(shape.dims().begin(), shape.dims().end(), std::back_inserter(dims),
               [](int64_t extent) { return extent != 1; });
  return dims;
}

// "a, b, c and 7 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) shown.push_back(visible(names[i]));
  const size_t rest = names.size() - shown.size();
  return join(shown, ", ") + (rest > 0 ? cat(" and ", rest, " more") : "");
}

class TorchLoader {
 public:
  TorchLoader(Net& net, const TensorFile& file, const WeightNames& names,
              const std::optional<TorchInput>& input)
      : net_(net), file_(file), names_(names), input_(input) {}

  TorchReport run() {
    if (input_) input_layers_ = layers_reading(net_, input_->blob);
    for (WeightNames::Pair pair : names_.pairs) {
      if (!pair.old_from.empty() && !has_module(pair.from)) pair.from = pair.old_from;
      load(pair);
    }
    check_leftovers();
    net_.parameters_changed();
    return std::move(report_);
  }

 private:
  const Parameter& parameter(const TorchSlot& slot) const {
    return net_.parameters()[net_.graph().views[slot.layer].parameters[slot.index]];
  }

  void load(const WeightNames::Pair& pair) {
    const TorchModule module = torch_module(net_, names_, pair, [&](const std::string& tensor) {
      return file_.entries().count(tensor) > 0;
    });
    std::vector<std::vector<float>> values;
    for (const TorchSlot& slot : module.slots) values.push_back(read(pair, slot));
    if (input_layers_.count(module.layer) > 0 && !names_.mean.empty()) {
      std::vector<float> no_bias;
      report_.notes.push_back(fold_input(net_.graph().net.layer(module.layer),
                                         parameter(module.slots[0]).shape, names_, *input_,
                                         &values[0], values.size() > 1 ? &values[1] : &no_bias));
    }
    for (size_t k = 0; k < module.slots.size(); ++k)
      assign(module.slots[k].layer, module.slots[k].index, values[k]);
    if (module.norm) assign(module.layer, 2, {1.f});
  }

  std::vector<float> read(const WeightNames::Pair& pair, const TorchSlot& slot) {
    const std::string& name = slot.tensor;
    const std::string& layer = net_.graph().net.layer(slot.layer).name();
    const auto found = file_.entries().find(name);
    if (found == file_.entries().end()) {
      std::vector<std::string> all;
      for (const auto& entry : file_.entries()) all.push_back(entry.first);
      fail(pair.where, ": layer \"", visible(layer), "\" needs \"", visible(name), "\", which ",
           file_.path(), " does not have", did_you_mean(name, all));
    }
    const Shape& shape = parameter(slot).shape;
    Shape whole = shape;  // the tensor that has it, or that it is a part of
    if (slot.parts > 1 && whole.axes() > 0) whole[0] *= slot.parts;
    require(essential(found->second.shape) == essential(whole), pair.where, ": \"", visible(name),
            "\" is ", found->second.shape.brief(), ", but layer \"", visible(layer), "\" has ",
            whole.brief(), " there");
    used_.insert(name);
    report_.rows.push_back({name, shown_parameter(net_, slot), shape.brief()});
    std::vector<float> values = file_.values(name);
    if (slot.parts == 1) return values;
    const auto first = values.begin() + slot.part * shape.count();
    return {first, first + shape.count()};
  }

  void assign(int i, int index, const std::vector<float>& values) {
    const int id = net_.graph().views[i].parameters[index];
    from_floats(net_.context(), values.data(), net_.parameters()[id].data);
    set_.insert(id);
  }

  bool has_module(const std::string& name) const {
    const auto first = file_.entries().lower_bound(name + ".");
    return first != file_.entries().end() && starts_with(first->first, name + ".");
  }

  bool is_left_out(const std::string& tensor) const {
    return ends_with(tensor, "num_batches_tracked") ||
           std::any_of(
               names_.left_out.begin(), names_.left_out.end(),
               [&](const std::string& module) { return starts_with(tensor, module + "."); });
  }

  void check_leftovers() {
    std::vector<std::string> left;
    for (const auto& entry : file_.entries()) {
      if (used_.count(entry.first) > 0) continue;
      (is_left_out(entry.first) ? report_.unused : left).push_back(entry.first);
    }
    require(left.empty(), file_.path(), ": no layer takes ", listed(left),
            "; does the net, or the map, need another -set, or another map (-names)?");
    for (int id = 0; id < static_cast<int>(net_.parameters().size()); ++id) {
      const Parameter& parameter = net_.parameters()[id];
      if (set_.count(id) == 0) left.push_back(cat(parameter.layer, "[", parameter.index, "]"));
    }
    require(left.empty(), file_.path(), ": nothing in it is for ", listed(left),
            " of the net; does the map (-names) have all layers?");
  }

  Net& net_;
  const TensorFile& file_;
  const WeightNames& names_;
  const std::optional<TorchInput>& input_;
  std::set<int> input_layers_, set_;
  std::set<std::string> used_;
  TorchReport report_;
};

}  // namespace

TorchReport load_torch_weights(Net& net, const TensorFile& file, const WeightNames& names,
                               const std::optional<TorchInput>& input) {
  return TorchLoader(net, file, names, input).run();
}

}  // namespace crema
