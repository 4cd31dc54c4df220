#include "net/weights/torch_layout.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/visible.h"

namespace crema {
namespace {

bool read_number(const std::string& text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// More parts of one tensor than any module has.
constexpr int kMaxParts = 1024;

class ModuleFinder {
 public:
  ModuleFinder(const Net& net, const WeightNames& names, const WeightNames::Pair& pair)
      : net_(net), names_(names), pair_(pair) {}

  TorchModule find(const std::function<bool(const std::string&)>& has) {
    module_.layer = find_layer();
    const int i = module_.layer;
    module_.norm = layer(i).type() == "BatchNorm";
    const std::string obstacle = obstacle_of(i);
    if (names_.own && (has ? has(pair_.from + ".0") : !obstacle.empty())) {
      add_numbers(i);
      return std::move(module_);
    }
    require(obstacle.empty(), pair_.where, ": layer \"", visible(pair_.to), "\" ", obstacle);
    if (module_.norm) {
      add("running_mean", i, 0);
      add("running_var", i, 1);
      const int scale = scale_after(i);
      add("weight", scale, 0);
      add("bias", scale, 1);
    } else {
      const std::vector<std::string> usual = {"weight", "bias"},
                                     &kinds = pair_.tensors.empty() ? usual : pair_.tensors;
      for (size_t k = 0; k < parameters(i); ++k) add(kinds[k], i, static_cast<int>(k));
      module_.slots[0].leading_ones = pair_.leading_ones;
      module_.slots[0].trailing_ones = pair_.trailing_ones;
    }
    return std::move(module_);
  }

 private:
  const LayerParameter& layer(int i) const { return net_.graph().net.layer(i); }
  size_t parameters(int i) const { return net_.graph().views[i].parameters.size(); }

  int find_layer() const {
    std::vector<std::string> with_parameters;
    for (int i = 0; i < net_.graph().net.layer_size(); ++i) {
      if (parameters(i) == 0) continue;
      if (layer(i).name() == pair_.to) return i;
      with_parameters.push_back(layer(i).name());
    }
    fail(pair_.where, ": the net has no layer \"", visible(pair_.to), "\" with parameters",
         did_you_mean(pair_.to, with_parameters), "; does the map need a -set that the net had?");
  }

  // The Scale layer that reads a BatchNorm's top: -1 if there is none.
  int scale_after(int norm) const {
    for (int i = norm + 1; i < net_.graph().net.layer_size(); ++i) {
      if (layer(i).bottom_size() > 0 && layer(i).bottom(0) == layer(norm).top(0))
        return layer(i).type() == "Scale" ? i : -1;
    }
    return -1;
  }

  // What keeps PyTorch from having a module with these values; "": nothing.
  std::string obstacle_of(int i) const {
    if (module_.norm) {
      const double eps = layer(i).batch_norm_param().eps();
      if (std::abs(eps - names_.eps) >= 1e-3 * names_.eps)
        return cat("has eps ", eps, ", but PyTorch's BatchNorm has ", names_.eps, "; -set 'layer[",
                   visible(pair_.to), "].batch_norm_param.eps=", names_.eps, "'");
      const int scale = scale_after(i);
      if (scale < 0 || parameters(scale) != 2)
        return "has no Scale layer with bias behind it, where PyTorch's weight and bias belong";
      return "";
    }
    if (layer(i).inner_product_param().transpose())
      return "keeps its weights transposed; PyTorch's are not: leave "
             "inner_product_param.transpose out";
    if (!pair_.tensors.empty() && pair_.tensors.size() != parameters(i))
      return cat("has ", parameters(i), " parameters, but its pair names ", pair_.tensors.size(),
                 " tensors");
    if (pair_.tensors.empty() && parameters(i) > 2)
      return cat("of type ", layer(i).type(), " has ", parameters(i),
                 " parameters; expected a weight and at most a bias");
    return "";
  }

  void add(const std::string& kind, int i, int index) {
    const std::vector<std::string> words = split(kind, ':');  // NAME, or NAME:PART:PARTS
    require(!words.empty() && !words[0].empty(), pair_.where, ": tensor \"", visible(kind),
            "\" has no name; expected one such as in_proj_weight, or in_proj_weight:0:3");
    TorchSlot slot{pair_.from.empty() ? words[0] : cat(pair_.from, ".", words[0]), i, index};
    if (words.size() > 1) {
      const bool given = words.size() == 3 && read_number(words[1], &slot.part) &&
                         read_number(words[2], &slot.parts);
      require(given && slot.part >= 0 && slot.part < slot.parts && slot.parts <= kMaxParts,
              pair_.where, ": tensor \"", visible(kind),
              "\" names no part; expected a name, a part from 0 and the number of parts, at most ",
              kMaxParts, ", such as in_proj_weight:0:3");
    }
    module_.slots.push_back(std::move(slot));
  }

  // As they are; a Scale for which own_names() has no pair of its own is next to its BatchNorm.
  void add_numbers(int i) {
    for (size_t k = 0; k < parameters(i); ++k) add(cat(k), i, static_cast<int>(k));
    const int scale = module_.norm ? scale_after(i) : -1;
    for (size_t k = 0; scale >= 0 && k < parameters(scale); ++k)
      module_.slots.push_back({cat(layer(scale).name(), ".", k), scale, static_cast<int>(k)});
    module_.norm = false;
  }

  const Net& net_;
  const WeightNames& names_;
  const WeightNames::Pair& pair_;
  TorchModule module_;
};

}  // namespace

TorchModule torch_module(const Net& net, const WeightNames& names, const WeightNames::Pair& pair,
                         const std::function<bool(const std::string& tensor)>& has) {
  return ModuleFinder(net, names, pair).find(has);
}

WeightNames own_names(const Net& net) {
  WeightNames names;
  names.own = true;
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

std::string shown_parameter(const Net& net, const TorchSlot& slot) {
  return cat(net.graph().net.layer(slot.layer).name(), "[", slot.index, "]");
}

}  // namespace crema
