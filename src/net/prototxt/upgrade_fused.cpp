// Unfuses layers that contain the ones after them (fuse_type of an OpenCL fork, relu: true of
// Intel's) into separate layers, which the planner fuses if that is faster.
#include <algorithm>

#include "base/error.h"
#include "net/prototxt/upgrade_layers.h"

namespace crema {

namespace {

LayerParameter layer_behind(const LayerParameter& fused, const std::string& type,
                            const std::string& suffix) {
  LayerParameter layer;
  layer.set_name(cat(fused.name(), "/", suffix));
  layer.set_type(type);
  *layer.mutable_include() = fused.include();
  *layer.mutable_exclude() = fused.exclude();
  if (fused.has_phase()) layer.set_phase(fused.phase());
  return layer;
}

LayerParameter relu_behind(const LayerParameter& layer, const std::string& top,
                           const ReLUParameter& relu_param) {
  LayerParameter relu = layer_behind(layer, "ReLU", "relu");
  relu.add_bottom(top);
  relu.add_top(top);
  *relu.mutable_relu_param() = relu_param;
  return relu;
}

// An LRN alone, followed by the pooling that it contained.
std::vector<LayerParameter> unfolded_lrn(LayerParameter lrn, const std::string& place) {
  const bool pools = lrn.lrn_param().fuse_type() == LRNParameter::FUSED_POOL_MAX;
  const PoolingParameter pooling_param = lrn.lrn_param().pooling_param();
  lrn.mutable_lrn_param()->clear_fuse_type();
  lrn.mutable_lrn_param()->clear_pooling_param();
  if (!pools) return {lrn};
  require(lrn.top_size() == 1, place, ": with this fuse_type an LRN has one top, but there are ",
          lrn.top_size());
  LayerParameter pooling = layer_behind(lrn, "Pooling", "pool");
  const std::string between = cat(lrn.name(), "/lrn");
  pooling.add_bottom(between);
  pooling.add_top(lrn.top(0));
  lrn.set_top(0, between);
  *pooling.mutable_pooling_param() = pooling_param;
  pooling.mutable_pooling_param()->set_pool(PoolingParameter::MAX);
  return {lrn, pooling};
}

// The convolution alone, followed by the layers that it contained.
std::vector<LayerParameter> unfolded(LayerParameter convolution, const std::string& place) {
  const auto kind = convolution.convolution_param().fuse_type();
  const ReLUParameter relu_param = convolution.convolution_param().relu_param();
  convolution.mutable_convolution_param()->clear_fuse_type();
  convolution.mutable_convolution_param()->clear_relu_param();
  if (kind == ConvolutionParameter::UNFUSED) return {convolution};
  const bool sums = kind == ConvolutionParameter::FUSED_CONV_ELTWISE_RELU;
  require(sums || kind == ConvolutionParameter::FUSED_CONV_RELU, place, ": fuse_type ",
          ConvolutionParameter::FuseType_Name(kind),
          " is not supported: write what it joins as layers of their own");
  require(convolution.top_size() == 1 && convolution.bottom_size() == (sums ? 2 : 1), place,
          ": with this fuse_type a convolution has one top and ",
          sums ? "two bottoms, the second one to be added" : "one bottom", ", but there are ",
          convolution.top_size(), " and ", convolution.bottom_size());
  const std::string top = convolution.top(0);
  std::vector<LayerParameter> layers;
  if (sums) {
    LayerParameter sum = layer_behind(convolution, "Eltwise", "sum");
    const std::string product = cat(convolution.name(), "/convolution");
    sum.add_bottom(product);
    sum.add_bottom(convolution.bottom(1));
    sum.add_top(top);
    convolution.set_top(0, product);
    convolution.mutable_bottom()->RemoveLast();
    if (convolution.propagate_down_size() == 2) {
      *sum.mutable_propagate_down() = convolution.propagate_down();
      convolution.mutable_propagate_down()->RemoveLast();
    }
    layers.push_back(sum);
  }
  layers.push_back(relu_behind(convolution, top, relu_param));
  layers.insert(layers.begin(), convolution);
  return layers;
}

bool has_relu(const LayerParameter& layer) {
  return layer.convolution_param().has_relu() || layer.batch_norm_param().has_relu();
}

// The layer alone, followed by its ReLU.
std::vector<LayerParameter> without_relu(LayerParameter layer, const std::string& place) {
  const bool relu = layer.convolution_param().relu() || layer.batch_norm_param().relu();
  ReLUParameter relu_param;
  if (layer.has_convolution_param()) {
    ConvolutionParameter& p = *layer.mutable_convolution_param();
    if (p.negative_slope() != 0) relu_param.set_negative_slope(p.negative_slope());
    p.clear_relu();
    p.clear_negative_slope();
  }
  if (layer.has_batch_norm_param()) layer.mutable_batch_norm_param()->clear_relu();
  if (!relu) return {layer};
  require(layer.top_size() == 1, place, ": with relu: true the layer has one top, but there are ",
          layer.top_size());
  return {layer, relu_behind(layer, layer.top(0), relu_param)};
}

}  // namespace

void unfold_layers(NetParameter* net, std::vector<std::string>* origins, const Locate& where) {
  const auto is_fused = [](const LayerParameter& layer) {
    return layer.convolution_param().has_fuse_type() || layer.lrn_param().has_fuse_type() ||
           has_relu(layer);
  };
  if (std::none_of(net->layer().begin(), net->layer().end(), is_fused)) return;
  NetParameter result = *net;
  result.clear_layer();
  std::vector<std::string> from;
  for (int i = 0; i < net->layer_size(); ++i) {
    const std::string& origin = (*origins)[i];
    std::vector<LayerParameter> layers = {net->layer(i)};
    if (layers[0].convolution_param().has_fuse_type()) {
      layers = unfolded(layers[0], where(cat(origin, ".convolution_param.fuse_type")));
    } else if (layers[0].lrn_param().has_fuse_type()) {
      layers = unfolded_lrn(layers[0], where(cat(origin, ".lrn_param.fuse_type")));
    } else if (has_relu(layers[0])) {
      layers = without_relu(layers[0], where(origin));
    }
    for (const LayerParameter& layer : layers) {
      *result.add_layer() = layer;
      from.push_back(origin);
    }
  }
  *net = result;
  *origins = from;
}

}  // namespace crema
