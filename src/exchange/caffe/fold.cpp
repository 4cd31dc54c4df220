#include "exchange/caffe/fold.h"

#include <cmath>

#include "proto/params/convolution.pb.h"
#include "proto/params/dense.pb.h"
#include "proto/params/normalization.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {

namespace {

// factor * x + shift for each channel.
struct Line {
  std::vector<double> factor, shift;
};

bool is_along_channels(const std::vector<CaffeBlob>& blobs, int axis, const Shape& x) {
  return !blobs.empty() && x.axes() >= 2 && x.canonical_axis(axis) == 1 &&
         blobs[0].shape.axes() == 1 && blobs[0].shape[0] == x[1];
}

// What the layer computes, if it is a line along the channels.
bool read_line(const CaffeLayer& layer, const Shape& x, Line* line) {
  if (layer.bottoms.size() != 1 || layer.tops.size() != 1) return false;
  const LayerParameter& message = layer.message;
  if (message.type() == "BatchNorm") {
    const BatchNormParameter& p = message.batch_norm_param();
    if (x.axes() < 2 || (p.has_use_global_stats() && !p.use_global_stats())) return false;
    const std::span<const float> mean = layer.blobs[0].values, variance = layer.blobs[1].values;
    const float number = layer.blobs[2].values[0];
    const double by = number == 0 ? 0 : 1 / static_cast<double>(number);
    for (size_t c = 0; c < mean.size(); ++c) {
      double factor = 1 / std::sqrt(variance[c] * by + p.eps()), shift = -mean[c] * by * factor;
      if (layer.blobs.size() > 3) {
        factor *= layer.blobs[3].values[c];
        shift *= layer.blobs[3].values[c];
      }
      if (layer.blobs.size() > 4) shift += layer.blobs[4].values[c];
      line->factor.push_back(factor);
      line->shift.push_back(shift);
    }
    return true;
  }
  if (message.type() == "Scale" &&
      is_along_channels(layer.blobs, message.scale_param().axis(), x)) {
    line->factor.assign(layer.blobs[0].values.begin(), layer.blobs[0].values.end());
    line->shift.assign(line->factor.size(), 0);
    if (layer.blobs.size() > 1)
      line->shift.assign(layer.blobs[1].values.begin(), layer.blobs[1].values.end());
    return true;
  }
  if (message.type() == "Bias" && is_along_channels(layer.blobs, message.bias_param().axis(), x)) {
    line->shift.assign(layer.blobs[0].values.begin(), layer.blobs[0].values.end());
    line->factor.assign(line->shift.size(), 1);
    return true;
  }
  return false;
}

// The output channel of each weight.
class Product {
 public:
  // Null type: not one that takes a line.
  Product(const CaffeLayer& layer, const Shape& y, size_t channels) {
    const LayerParameter& message = layer.message;
    if (layer.bottoms.size() != 1 || layer.tops.size() != 1 || layer.blobs.empty()) return;
    const Shape& weights = layer.blobs[0].shape;
    const ConvolutionParameter& p = message.convolution_param();
    if (message.type() == "Convolution" || message.type() == "Deconvolution") {
      if (p.axis() != 1 || y.axes() < 3) return;
      outer_ = 1;
      outputs_ = weights[0];
      inner_ = weights.count(1);
      if (message.type() == "Deconvolution") {  // (inputs, outputs of a group, ...)
        group_ = p.group();
        outer_ = weights[0];
        outputs_ = weights[1];
        inner_ = weights.count(2);
      }
    } else if (message.type() == "InnerProduct") {
      const InnerProductParameter& inner = message.inner_product_param();
      if (y.axes() != 2) return;
      outer_ = inner.transpose() ? weights[0] : 1;
      outputs_ = inner.transpose() ? weights[1] : weights[0];
      inner_ = inner.transpose() ? 1 : weights.count(1);
    } else {
      return;
    }
    fits_ = outputs_ * group_ == static_cast<int64_t>(channels);
  }

  bool fits() const { return fits_; }
  void multiply(const std::vector<double>& factor, std::vector<float>* weights) const {
    for (size_t i = 0; i < weights->size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const int64_t part = at / inner_ / outputs_ / (outer_ / group_);
      const int64_t channel = part * outputs_ + at / inner_ % outputs_;
      (*weights)[i] = static_cast<float>((*weights)[i] * factor[channel]);
    }
  }

 private:
  bool fits_ = false;
  int64_t outer_ = 1, outputs_ = 0, inner_ = 1, group_ = 1;
};

void fold_line(const Line& line, const Product& product, CaffeLayer* layer) {
  std::vector<float> weights = layer->blobs[0].copy();
  product.multiply(line.factor, &weights);
  layer->blobs[0] = {layer->blobs[0].shape, std::move(weights)};
  std::vector<float> bias(line.shift.size());
  if (layer->blobs.size() > 1) bias = layer->blobs[1].copy();
  for (size_t c = 0; c < bias.size(); ++c)
    bias[c] = static_cast<float>(bias[c] * line.factor[c] + line.shift[c]);
  layer->blobs.resize(1);
  layer->blobs.push_back({{static_cast<int64_t>(bias.size())}, bias});
  if (layer->message.type() == "InnerProduct")
    layer->message.mutable_inner_product_param()->clear_bias_term();
  else
    layer->message.mutable_convolution_param()->clear_bias_term();
}

}  // namespace

void fold_into_products(CaffeGraph* graph) {
  const std::vector<int> reads = graph->reads();
  std::vector<int> makers(graph->values.size(), -1);
  std::vector<CaffeLayer> left;
  for (CaffeLayer& layer : graph->layers) {
    const int x = layer.bottoms.empty() ? -1 : layer.bottoms[0];
    Line line;
    if (x >= 0 && makers[x] >= 0 && reads[x] == 1 && !graph->values[x].output &&
        read_line(layer, graph->values[x].shape, &line)) {
      CaffeLayer& before = left[makers[x]];
      const Product product(before, graph->values[x].shape, line.factor.size());
      if (product.fits()) {
        fold_line(line, product, &before);
        before.tops = layer.tops;
        makers[layer.tops[0]] = makers[x];
        continue;
      }
    }
    for (const int id : layer.tops) makers[id] = static_cast<int>(left.size());
    left.push_back(std::move(layer));
  }
  graph->layers = std::move(left);
}

}  // namespace crema
