#include "exchange/quantize/calibration.h"

#include <algorithm>
#include <cmath>

#include "exchange/quantize/quantized_node.h"
#include "layers/layer_facts.h"
#include "net/graph/graph_builder.h"
#include "net/plan/plan.h"
#include "proto/layer.pb.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

// The nodes of the plan that run these layers, in order.
std::vector<const PlanNode*> quantizable_nodes(Net& net) {
  std::vector<const PlanNode*> nodes;
  for (const PlanNode& node : net.plan().nodes)
    if (is_quantizable(node)) nodes.push_back(&node);
  return nodes;
}

// Sums by channel, or by element without spatial axes.
class ChannelSums {
 public:
  void add(const Shape& shape, const std::vector<float>& values) {
    const int64_t points = shape.axes() > 2 ? shape.count(2) : 1,
                  channels = shape.axes() > 1 ? shape[1] : 1;
    sums_.resize(static_cast<size_t>(channels));
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i)
      sums_[i / points % channels] += values[i];
    count_ += shape[0] * points;
  }
  std::vector<double> means() const {
    std::vector<double> means = sums_;
    for (double& mean : means) mean /= static_cast<double>(std::max<int64_t>(count_, 1));
    return means;
  }

 private:
  std::vector<double> sums_;
  int64_t count_ = 0;
};

// The weights' columns, or blocks of them, are the positions along axis 1.
bool has_channels(const PlanNode& node) {
  const bool is_convolution = facts_of(node.message.type()).kind == LayerKind::convolution;
  return (is_convolution ? node.message.convolution_param().axis()
                         : node.message.inner_product_param().axis()) == 1;
}

// body(index of the layer, node, row-major values of bottom 0) for each batch.
template <typename Body>
void for_bottoms(Net& net, int64_t batches, const BatchFeed& feed, const Body& body) {
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (feed) feed(net, batch);
    net.forward(static_cast<uint64_t>(batch));
    net.check();
    const std::vector<const PlanNode*> nodes = quantizable_nodes(net);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<float> values =
          to_floats(net.context(), nodes[i]->arguments.forward.bottom[0]);
      at_layer(nodes[i]->place, [&] { body(i, *nodes[i], values); });
    }
  }
}

void add_channels(const PlanNode& node, const std::vector<float>& values, ChannelSums* sums) {
  if (has_channels(node)) sums->add(node.arguments.forward.bottom[0].shape(), values);
}

std::vector<std::vector<double>> means_of(const std::vector<ChannelSums>& sums) {
  std::vector<std::vector<double>> means;
  for (const ChannelSums& one : sums) means.push_back(one.means());
  return means;
}

}  // namespace

std::vector<std::string> quantizable_layers(const Net& net) {
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes)
    if (is_quantizable(node)) names.push_back(node.message.name());
  return names;
}

std::vector<LayerCalibration> calibrate(Net& net, int64_t batches, const BatchFeed& feed) {
  std::vector<LayerCalibration> layers;
  for (const std::string& name : quantizable_layers(net)) layers.push_back({name, {}, {}});
  std::vector<ChannelSums> sums(layers.size());
  for_bottoms(net, batches, feed,
              [&](size_t i, const PlanNode& node, const std::vector<float>& values) {
                layers[i].bottom.add(values);
                add_channels(node, values, &sums[i]);
              });
  const std::vector<std::vector<double>> means = means_of(sums);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].means = means[i];
  return layers;
}

std::vector<std::vector<double>> rounded_means(Net& net, int64_t batches, const BatchFeed& feed,
                                               const std::vector<QuantizedValues>& values) {
  std::vector<ChannelSums> sums(values.size());
  for_bottoms(net, batches, feed, [&](size_t i, const PlanNode& node, std::vector<float> bottom) {
    const Tensor all =
        Tensor::wrap(bottom.data(), {static_cast<int64_t>(bottom.size())}, DType::f32);
    Context host(Device::cpu);
    quantize(host, values[i], all, all);
    add_channels(node, bottom, &sums[i]);
  });
  return means_of(sums);
}

std::vector<double> signal_to_noise(Net& exact, Net& rounded, int64_t batches,
                                    const BatchFeed& feed) {
  std::vector<double> signal(quantizable_layers(exact).size()), noise(signal.size());
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (feed) {
      feed(exact, batch);
      feed(rounded, batch);
    }
    exact.forward(static_cast<uint64_t>(batch));
    rounded.forward(static_cast<uint64_t>(batch));
    const std::vector<const PlanNode*> a = quantizable_nodes(exact), b = quantizable_nodes(rounded);
    for (size_t i = 0; i < a.size(); ++i) {
      const std::vector<float> y = to_floats(exact.context(), a[i]->arguments.forward.top[0]),
                               z = to_floats(rounded.context(), b[i]->arguments.forward.top[0]);
      for (size_t k = 0; k < y.size(); ++k) {
        signal[i] += static_cast<double>(y[k]) * y[k];
        noise[i] += (static_cast<double>(y[k]) - z[k]) * (static_cast<double>(y[k]) - z[k]);
      }
    }
  }
  std::vector<double> decibels;
  for (size_t i = 0; i < signal.size(); ++i)
    decibels.push_back(10 * std::log10(signal[i] / noise[i]));
  return decibels;
}

}  // namespace crema
