#include "net/surgery/shrink.h"

#include <algorithm>
#include <map>
#include <set>

#include "layers/layer_facts.h"
#include "net/surgery/channel_groups.h"
#include "proto/layer.pb.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

// Blob without these positions along an axis.
WeightBlob without(const WeightBlob& blob, int axis, const std::set<int64_t>& gone) {
  const int64_t extent = blob.shape[axis], outer = blob.shape.count(0, axis),
                inner = blob.shape.count(axis + 1);
  WeightBlob left;
  std::vector<int64_t> dims = blob.shape.dims();
  dims[axis] -= std::ssize(gone);
  left.shape = Shape(dims);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < extent; ++k) {
      if (gone.count(k) > 0) continue;
      const auto from = blob.values.begin() + (o * extent + k) * inner;
      left.values.insert(left.values.end(), from, from + inner);
    }
  }
  return left;
}

class Shrinker {
 public:
  Shrinker(const NetParameter& text, Net& net) : graph_(net.graph()) {
    result_.net = text;
    result_.weights = weights_of(net);
  }

  ShrunkNet run() {
    for (const ChannelGroup& group : channel_groups(graph_)) remove(group);
    for (const auto& [at, gone] : gone_) {
      WeightBlob& blob = blob_of(at.first);
      blob = without(blob, at.second, gone);
    }
    return std::move(result_);
  }

 private:
  WeightBlob& blob_of(int parameter) {
    const Parameter& p = graph_.parameters[parameter];
    return result_.weights.at(p.layer)[static_cast<size_t>(p.index)];
  }

  bool is_zero(const ChannelGroup& group, int64_t channel) {
    return std::all_of(group.parts.begin(), group.parts.end(), [&](const ChannelPart& part) {
      if (part.axis != 0) return true;
      const WeightBlob& blob = blob_of(part.parameter);
      const int64_t size = part.width * blob.shape.count(1);
      const auto first = blob.values.begin() + (part.first * blob.shape.count(1) + channel * size);
      return std::all_of(first, first + size, [](float value) { return value == 0; });
    });
  }

  void remove(const ChannelGroup& group) {
    std::vector<int64_t> gone;
    for (int64_t channel = 0; channel < group.channels; ++channel)
      if (is_zero(group, channel)) gone.push_back(channel);
    if (std::ssize(gone) == group.channels) gone.pop_back();
    const auto count = std::ssize(gone);
    for (const std::string& layer : group.layers) change(layer, count);
    for (const ChannelPart& part : group.parts)
      for (const int64_t channel : gone)
        for (int64_t i = 0; i < part.width; ++i)
          gone_[{part.parameter, part.axis}].insert(part.first + channel * part.width + i);
    for (const std::string& name : group.counts)
      for (LayerParameter& layer : *result_.net.mutable_layer()) {
        if (layer.name() != name || !layer.convolution_param().has_group()) continue;
        ConvolutionParameter& p = *layer.mutable_convolution_param();
        p.set_group(p.group() - static_cast<uint32_t>(count));
      }
  }

  // A layer has several groups where a depthwise convolution reads a concatenation.
  void change(const std::string& name, int64_t count) {
    int64_t before = 0;
    for (LayerParameter& layer : *result_.net.mutable_layer()) {
      if (layer.name() != name) continue;
      const auto less = [&](auto* p) {
        before = p->num_output();
        p->set_num_output(static_cast<uint32_t>(before - count));
      };
      facts_of(layer.type()).kind == LayerKind::dense ? less(layer.mutable_inner_product_param())
                                                      : less(layer.mutable_convolution_param());
    }
    const auto same = [&](const ShrunkNet::Layer& layer) { return layer.name == name; };
    const auto known = std::find_if(result_.layers.begin(), result_.layers.end(), same);
    if (known == result_.layers.end()) {
      result_.layers.push_back({name, before, before - count});
    } else {
      known->after -= count;
    }
  }

  const Graph& graph_;
  ShrunkNet result_;
  std::map<std::pair<int, int>, std::set<int64_t>> gone_;  // by parameter and axis
};

}  // namespace

ShrunkNet shrink(const NetParameter& text, Net& net) { return Shrinker(text, net).run(); }

}  // namespace crema
