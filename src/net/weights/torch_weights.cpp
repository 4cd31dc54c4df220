#include "net/weights/torch_weights.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/visible.h"
#include "net/weights/torch_input.h"

namespace crema {
namespace {

// Extents of 1 say nothing: a bias may be 64 or 1x64x1x1.
std::vector<int64_t> essential(const Shape& shape) {
  std::vector<int64_t> dims;
  std::copy_if(shape.dims().begin(), shape.dims().end(), std::back_inserter(dims),
               [](int64_t extent) { return extent != 1; });
  return dims;
}

bool ends_as_counter(const std::string& name) { return ends_with(name, "num_batches_tracked"); }

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
    for (const WeightNames::Pair& pair : names_.pairs) load(pair);
    check_leftovers();
    net_.parameters_changed();
    return std::move(report_);
  }

 private:
  const LayerParameter& layer(int i) const { return net_.graph().net.layer(i); }
  const std::vector<int>& parameters(int i) const { return net_.graph().views[i].parameters; }

  int find_layer(const WeightNames::Pair& pair) const {
    std::vector<std::string> with_parameters;
    for (int i = 0; i < net_.graph().net.layer_size(); ++i) {
      if (parameters(i).empty()) continue;
      if (layer(i).name() == pair.to) return i;
      with_parameters.push_back(layer(i).name());
    }
    fail(pair.where, ": the net has no layer \"", visible(pair.to), "\" with parameters",
         did_you_mean(pair.to, with_parameters), "; does the map need a -set that the net had?");
  }

  // The Scale layer that reads a BatchNorm's top: -1 if there is none.
  int scale_after(int norm) const {
    for (int i = norm + 1; i < net_.graph().net.layer_size(); ++i) {
      if (layer(i).bottom_size() > 0 && layer(i).bottom(0) == layer(norm).top(0))
        return layer(i).type() == "Scale" ? i : -1;
    }
    return -1;
  }

  void load(const WeightNames::Pair& pair) {
    const int i = find_layer(pair);
    if (layer(i).type() == "BatchNorm") {
      load_norm(pair, i);
      return;
    }
    const bool transposed = layer(i).inner_product_param().transpose();
    require(
        !transposed, pair.where, ": layer \"", visible(pair.to),
        "\" keeps its weights transposed; PyTorch's are not: leave inner_product_param.transpose "
        "out");
    require(parameters(i).size() <= 2, pair.where, ": layer \"", visible(pair.to), "\" of type ",
            layer(i).type(), " has ", parameters(i).size(),
            " parameters; expected a weight and at most a bias");
    if (input_layers_.count(i) > 0 && !names_.mean.empty()) {
      load_input_layer(pair, i);
      return;
    }
    set(pair, "weight", i, 0);
    if (parameters(i).size() > 1) set(pair, "bias", i, 1);
  }

  void load_norm(const WeightNames::Pair& pair, int i) {
    constexpr double kTorch = 1e-5;
    const double eps = layer(i).batch_norm_param().eps();
    require(std::abs(eps - kTorch) < 1e-3 * kTorch, pair.where, ": layer \"", visible(pair.to),
            "\" has eps ", eps, ", but PyTorch's BatchNorm has 1e-05; -set 'layer[",
            visible(pair.to), "].batch_norm_param.eps=1e-5'");
    const int scale = scale_after(i);
    require(scale >= 0 && parameters(scale).size() == 2, pair.where,
            ": no Scale layer with bias follows layer \"", visible(pair.to),
            "\"; PyTorch's weight and bias belong there");
    set(pair, "running_mean", i, 0);
    set(pair, "running_var", i, 1);
    assign(i, 2, {1.f});
    set(pair, "weight", scale, 0);
    set(pair, "bias", scale, 1);
  }

  void load_input_layer(const WeightNames::Pair& pair, int i) {
    std::vector<float> weight = read(pair, "weight", i, 0), bias;
    if (parameters(i).size() > 1) bias = read(pair, "bias", i, 1);
    report_.notes.push_back(fold_input(layer(i), net_.parameters()[parameters(i)[0]].shape, names_,
                                       *input_, &weight, &bias));
    assign(i, 0, weight);
    if (!bias.empty()) assign(i, 1, bias);
  }

  void set(const WeightNames::Pair& pair, const char* kind, int i, int index) {
    assign(i, index, read(pair, kind, i, index));
  }

  std::vector<float> read(const WeightNames::Pair& pair, const char* kind, int i, int index) {
    const std::string name = cat(pair.from, ".", kind);
    const auto found = file_.entries().find(name);
    if (found == file_.entries().end()) {
      std::vector<std::string> all;
      for (const auto& entry : file_.entries()) all.push_back(entry.first);
      fail(pair.where, ": layer \"", visible(layer(i).name()), "\" needs \"", visible(name),
           "\", which ", file_.path(), " does not have", did_you_mean(name, all));
    }
    const Shape& shape = net_.parameters()[parameters(i)[index]].shape;
    require(essential(found->second.shape) == essential(shape), pair.where, ": \"", visible(name),
            "\" is ", found->second.shape.brief(), ", but layer \"", visible(layer(i).name()),
            "\" has ", shape.brief(), " there");
    used_.insert(name);
    report_.rows.push_back({name, cat(layer(i).name(), "[", index, "]"), shape.brief()});
    return file_.values(name);
  }

  void assign(int i, int index, const std::vector<float>& values) {
    const int id = parameters(i)[index];
    from_floats(net_.context(), values.data(), net_.parameters()[id].data);
    set_.insert(id);
  }

  void check_leftovers() {
    std::vector<std::string> left;
    for (const auto& entry : file_.entries()) {
      if (used_.count(entry.first) > 0) continue;
      (ends_as_counter(entry.first) ? report_.unused : left).push_back(entry.first);
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

WeightNames own_names(const Net& net) {
  WeightNames names;
  const Graph& graph = net.graph();
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    const bool of_norm = layer.type() == "Scale" && i > 0 && layer.bottom_size() == 1 &&
                         graph.net.layer(i - 1).type() == "BatchNorm" &&
                         graph.net.layer(i - 1).top(0) == layer.bottom(0);
    if (!graph.views[i].parameters.empty() && !of_norm)
      names.pairs.push_back({layer.name(), layer.name(), "the net's own names"});
  }
  return names;
}

}  // namespace crema
