#include "solver/compression/pruning.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "layers/layer_facts.h"
#include "solver/iteration/optimizer.h"

namespace crema {
namespace {

// The indices of the `count` smallest values; of equal ones the first.
std::vector<size_t> smallest(const std::vector<double>& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  order.resize(count);
  return order;
}

size_t share_of(double share, size_t count) {
  return static_cast<size_t>(std::floor(share * static_cast<double>(count) + 1e-9));
}

// A layer with weights that the run changes.
bool learns(const LayerParameter& layer) {
  return facts_of(layer.type()).quantizes && layer.stored();
}

}  // namespace

Pruning::Pruning(const SolverFile& file, Net& net, Optimizer& optimizer)
    : file_(file),
      p_(file.solver.prune()),
      net_(net),
      optimizer_(optimizer),
      layers_(file, "prune") {
  std::vector<std::string> names;
  const Graph& graph = net.graph();
  if (p_.kind() == PruneTraining::CHANNELS) {
    std::set<std::string> learning;
    for (const LayerParameter& layer : graph.net.layer())
      if (learns(layer)) learning.insert(layer.name());
    for (ChannelGroup& group : channel_groups(graph)) {
      if (std::any_of(group.layers.begin(), group.layers.end(),
                      [&](const std::string& layer) { return learning.count(layer) == 0; }))
        continue;
      names.insert(names.end(), group.layers.begin(), group.layers.end());
      const auto chosen = [&](const std::string& layer) { return layers_.has(layer); };
      if (std::all_of(group.layers.begin(), group.layers.end(), chosen))
        channels_.push_back(std::move(group));
    }
    layers_.require_used(file, names, "a layer whose channels could be removed");
  } else {
    for (size_t i = 0; i < graph.views.size(); ++i) {
      const LayerParameter& layer = graph.net.layer(static_cast<int>(i));
      if (!learns(layer) || graph.views[i].parameters.empty()) continue;
      names.push_back(layer.name());
      const int weights = graph.views[i].parameters[0];
      if (layers_.has(layer.name()) &&
          std::find(weights_.begin(), weights_.end(), weights) == weights_.end())
        weights_.push_back(weights);
    }
    layers_.require_used(file, names, "a layer whose weights could be removed");
  }
  require(!weights_.empty() || !channels_.empty(), file.where("prune"),
          ": prune: no layer is left whose ",
          p_.kind() == PruneTraining::CHANNELS ? "channels" : "weights",
          " could be removed; `crema shrink` has the rules");
}

int64_t Pruning::end() const {
  if (p_.kind() == PruneTraining::TWO_OF_FOUR) return p_.start();
  return p_.has_end() ? p_.end() : (p_.start() + int64_t{file_.solver.max_iter()}) / 2;
}

bool Pruning::is_due(int64_t iteration) const {
  if (iteration < p_.start() || iteration > end()) return false;
  return iteration == end() || (iteration - p_.start()) % p_.interval() == 0;
}

double Pruning::share_in(int64_t iteration) const {
  if (iteration < p_.start()) return kNone;
  const int64_t last = end();
  if (iteration >= last)
    return p_.kind() == PruneTraining::TWO_OF_FOUR ? 0.5 : double{p_.sparsity()};
  const int64_t step = (iteration - p_.start()) / p_.interval() * p_.interval();
  const double left = 1 - static_cast<double>(step) / static_cast<double>(last - p_.start());
  return left < 1 ? p_.sparsity() * (1 - left * left * left) : kNone;
}

std::string Pruning::follow(int64_t iteration) {
  const double share = share_in(iteration);
  if (share == share_) return "";
  read();
  if (share == kNone) {
    for (Values& values : values_) values.mask.clear();
  } else if (p_.kind() == PruneTraining::CHANNELS) {
    choose_channels(share);
  } else if (p_.kind() == PruneTraining::WEIGHTS) {
    choose_weights(share);
  } else {
    choose_pairs();
  }
  write();
  share_ = share;
  int64_t count = 0, kept = 0;
  for (const Values& values : values_) {
    if (values.mask.empty()) continue;
    count += std::ssize(values.mask);
    kept += std::count(values.mask.begin(), values.mask.end(), 1.0f);
  }
  values_.clear();
  if (share == kNone) return "";
  char text[120];
  std::snprintf(text, sizeof text, "Pruned %.1f %% (%lld of %lld values of the layers are 0)",
                100 * share, static_cast<long long>(count - kept), static_cast<long long>(count));
  return text;
}

void Pruning::read() {
  values_.clear();
  for (const Parameter& parameter : net_.parameters()) values_.push_back({parameter.shape, {}, {}});
  const auto use = [&](int parameter) {
    Values& values = values_[parameter];
    if (!values.mask.empty()) return;
    values.now = to_floats(net_.context(), net_.parameters()[parameter].data);
    values.mask.assign(values.now.size(), 1);
  };
  for (const int parameter : weights_) use(parameter);
  for (const ChannelGroup& group : channels_)
    for (const ChannelPart& part : group.parts) use(part.parameter);
}

void Pruning::choose_weights(double share) {
  for (const int parameter : weights_) {
    Values& values = values_[parameter];
    std::vector<double> sizes;
    for (const float value : values.now) sizes.push_back(std::abs(value));
    for (const size_t i : smallest(sizes, share_of(share, sizes.size()))) values.mask[i] = 0;
  }
}

// Neighbors are along axis 1; what is left of a row of a length that 4 does not divide stays.
void Pruning::choose_pairs() {
  for (const int parameter : weights_) {
    Values& values = values_[parameter];
    const Shape& shape = values.shape;
    const int64_t rows = shape[0], channels = shape.axes() > 1 ? shape[1] : 1,
                  inner = shape.count(std::min(2, shape.axes()));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t channel = 0; channel + 4 <= channels; channel += 4) {
        for (int64_t i = 0; i < inner; ++i) {
          std::vector<double> four;
          const auto at = [&](size_t k) {
            return (row * channels + channel + static_cast<int64_t>(k)) * inner + i;
          };
          for (size_t k = 0; k < 4; ++k) four.push_back(std::abs(values.now[at(k)]));
          for (const size_t k : smallest(four, 2)) values.mask[at(k)] = 0;
        }
      }
    }
  }
}

// Of each channel: the sum of the squares of its rows in each layer, as a share of the layer's.
std::vector<double> Pruning::sizes_of(const ChannelGroup& group) const {
  std::vector<double> sizes(static_cast<size_t>(group.channels));
  for (const ChannelPart& part : group.parts) {
    const Values& values = values_[part.parameter];
    if (part.axis != 0 || values.shape.axes() < 2) continue;
    const int64_t row = values.shape.count(1);
    std::vector<double> squares(sizes.size());
    for (int64_t k = 0; k < group.channels * row; ++k) {
      const double w = values.now[part.first * row + k];
      squares[k / row] += w * w;
    }
    const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += all > 0 ? squares[i] / all : 0;
  }
  return sizes;
}

void Pruning::choose_channels(double share) {
  for (const ChannelGroup& group : channels_) {
    const size_t count = std::min(share_of(share, static_cast<size_t>(group.channels)),
                                  static_cast<size_t>(group.channels) - 1);
    const std::vector<size_t> gone = smallest(sizes_of(group), count);
    for (const ChannelPart& part : group.parts) {
      Values& values = values_[part.parameter];
      const int64_t outer = part.axis == 0 ? 1 : values.shape[0], extent = values.shape[part.axis],
                    inner = values.shape.count(part.axis + 1);
      for (const size_t channel : gone) {
        const int64_t first = part.first + static_cast<int64_t>(channel) * part.width;
        for (int64_t o = 0; o < outer; ++o) {
          const auto begin = values.mask.begin() + (o * extent + first) * inner;
          std::fill(begin, begin + part.width * inner, 0.0f);
        }
      }
    }
  }
}

void Pruning::write() {
  std::vector<std::vector<float>> masks;
  for (Values& values : values_) masks.push_back(values.mask);
  optimizer_.keep_zeros(masks);
}

}  // namespace crema
