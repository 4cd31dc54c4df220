// Normalizations.
#include <cmath>
#include <numeric>

#include "exchange/onnx/layer_export.h"
#include "layers/norm/batch_norm_fields.h"
#include "proto/params/modern_norm.pb.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

std::vector<int64_t> axes_from(const Shape& shape, int first) {
  std::vector<int64_t> axes(std::max(shape.axes() - first, 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// Blobs of a batch normalization with stored statistics.
struct StoredNorm {
  std::vector<float> mean, variance, scale, shift;
  double eps = 0;

  ChannelLine line() const {
    ChannelLine line;
    for (size_t c = 0; c < mean.size(); ++c) {
      const double inverse = 1 / std::sqrt(variance[c] + eps);
      line.factor.push_back(scale[c] * inverse);
      line.shift.push_back(shift[c] - mean[c] * line.factor.back());
    }
    return line;
  }
  void fill() {
    if (scale.empty()) scale.assign(mean.size(), 1);
    if (shift.empty()) shift.assign(mean.size(), 0);
  }
};

void write_stored(LayerExport& layer, StoredNorm norm) {
  norm.fill();
  const Shape& x = layer.bottom_shape();
  const auto channels = static_cast<int64_t>(norm.mean.size());
  if (x.axes() < 2) {  // a single channel
    const ChannelLine line = norm.line();
    const std::string scaled =
        layer.node("Mul", {layer.bottom(), layer.scalar(static_cast<float>(line.factor[0]))});
    return layer.write("Add", {scaled, layer.scalar(static_cast<float>(line.shift[0]))});
  }
  if (layer.options().fold)
    return layer.graph().add_line(layer.bottom(), layer.top(), x.axes(), norm.line());
  layer.write(
      "BatchNormalization",
      {layer.bottom(), layer.floats({channels}, norm.scale), layer.floats({channels}, norm.shift),
       layer.floats({channels}, norm.mean), layer.floats({channels}, norm.variance)},
      {{"epsilon", static_cast<float>(norm.eps)}});
}

// (x - mean) / sqrt(variance + eps), or / (deviation + eps), over these axes.
std::string normalized(LayerExport& layer, const std::string& x, const std::vector<int64_t>& axes,
                       float eps, bool of_deviation = false) {
  const std::string mean = layer.reduce("ReduceMean", x, axes, true);
  const std::string centred = layer.node("Sub", {x, mean});
  std::string spread =
      layer.reduce("ReduceMean", layer.node("Mul", {centred, centred}), axes, true);
  if (of_deviation) spread = layer.node("Sqrt", {spread});
  spread = layer.node("Add", {spread, layer.scalar(eps)});
  if (!of_deviation) spread = layer.node("Sqrt", {spread});
  return layer.node("Div", {centred, spread});
}

// For nets that use the batch's statistics in inference too.
void write_of_batch(LayerExport& layer, float eps, const std::string& scale,
                    const std::string& shift) {
  std::vector<int64_t> axes = axes_from(layer.bottom_shape(), 2);
  axes.insert(axes.begin(), 0);
  std::string y = normalized(layer, layer.bottom(), axes, eps);
  if (!scale.empty()) y = layer.node("Mul", {y, scale});
  if (!shift.empty()) y = layer.node("Add", {y, shift});
  layer.write("Identity", {y});
}

std::string along_channels(LayerExport& layer, int parameter) {
  std::vector<int64_t> extents(std::max(layer.bottom_shape().axes() - 1, 1), 1);
  extents[0] = layer.parameter_shape(parameter).count();
  return layer.parameter(parameter, extents);
}

// For C: training changes parameters of the layer, so its operator reads them.
void write_for_training(LayerExport& layer, bool stored) {
  const BatchNormParameter& p = layer.message().batch_norm_param();
  if (!stored && p.stats_batch_size() > 0)
    layer.refuse("each group of stats_batch_size images has statistics of its own",
                 "leave stats_batch_size out, or train with `crema train`");
  const std::vector<std::string> inputs = {layer.bottom(), layer.parameter(0), layer.parameter(1),
                                           layer.parameter(2)};
  std::string y;
  if (stored) {
    y = layer.node("StoredBatchNorm", inputs, {{"epsilon", p.eps()}});
  } else {
    // The second result, 1 / deviation, is for the gradient.
    y = layer.graph().unique(layer.name("normalized"));
    layer.graph().add("BatchNorm", inputs, {y, layer.graph().unique(layer.name("inverse"))},
                      {{"epsilon", p.eps()}, {"fraction", p.moving_average_fraction()}});
  }
  if (learns_scale(p)) y = layer.node("Mul", {y, along_channels(layer, 3)});
  if (learns_bias(p)) y = layer.node("Add", {y, along_channels(layer, 4)});
  layer.write("Identity", {y});
}

void write_batch_norm(LayerExport& layer) {
  const BatchNormParameter& p = layer.message().batch_norm_param();
  const bool scales = learns_scale(p), shifts = learns_bias(p);
  const bool training = layer.options().training;
  const bool stored = uses_stored_statistics(p, training);
  if ((training && !stored) || (stored && (layer.trains(0) || layer.trains(3) || layer.trains(4))))
    return write_for_training(layer, stored);
  if (!stored) {
    return write_of_batch(layer, p.eps(), scales ? along_channels(layer, 3) : "",
                          shifts ? along_channels(layer, 4) : "");
  }
  StoredNorm norm;
  norm.eps = p.eps();
  norm.mean = layer.parameter_values(0);
  norm.variance = layer.parameter_values(1);
  const float number = layer.parameter_values(2)[0];
  const float by = number == 0 ? 0 : 1 / number;
  for (float& value : norm.mean) value *= by;
  for (float& value : norm.variance) value *= by;
  if (scales) norm.scale = layer.parameter_values(3);
  if (shifts) norm.shift = layer.parameter_values(4);
  write_stored(layer, std::move(norm));
}
EXPORT_LAYER(BatchNorm, write_batch_norm);

// Its forks differ in what they store: the blobs that the layer has say it.
void write_bn(LayerExport& layer) {
  const BNParameter& p = layer.message().bn_param();
  const bool of_segnet =
      p.has_bn_mode() || p.has_scale_filler() || p.has_shift_filler() || p.has_variance_eps();
  const float eps = !of_segnet || p.has_eps() ? p.eps() : p.variance_eps();
  if (layer.tops() > 1)
    layer.refuse("its further tops are the batch's statistics", "leave them out");
  if (layer.options().training && p.bn_mode() != BNParameter::INFERENCE)
    layer.refuse(
        "it computes the statistics of the batch in training",
        "write bn_param { bn_mode: INFERENCE } to keep those that it has, or use BatchNorm");
  StoredNorm norm;
  norm.scale = layer.parameter_values(0);
  norm.shift = layer.parameter_values(1);
  if (p.bn_mode() == BNParameter::INFERENCE) {
    norm.mean.assign(norm.scale.size(), 0);
    norm.variance.assign(norm.scale.size(), 1);
  } else if (layer.parameters() < 4) {
    return write_of_batch(layer, eps, along_channels(layer, 0), along_channels(layer, 1));
  } else {
    norm.eps = eps;
    norm.mean = layer.parameter_values(2);
    norm.variance = layer.parameter_values(3);
  }
  write_stored(layer, std::move(norm));
}
EXPORT_LAYER(BN, write_bn);

void write_lrn(LayerExport& layer) {
  const LRNParameter& p = layer.message().lrn_param();
  const int64_t size = p.local_size();
  const Shape& x = layer.bottom_shape();
  if (p.norm_region() == LRNParameter::ACROSS_CHANNELS) {
    const OnnxAttributes settings = {
        {"size", size}, {"alpha", p.alpha()}, {"beta", p.beta()}, {"bias", p.k()}};
    if (x.axes() == 4) return layer.write("LRN", {layer.bottom()}, settings);
    // Runtimes take images only.
    const std::string image = layer.reshape(layer.bottom(), {-1, x[1], x.count(2), 1});
    return layer.reshape_to_top(layer.node("LRN", {image}, settings));
  }
  if (layer.options().for_c)  // in one operator, which keeps no values for a gradient
    return layer.write("LrnWithin", {layer.bottom()},
                       {{"size", size}, {"alpha", p.alpha()}, {"beta", p.beta()}});
  const std::string squares = layer.node("Mul", {layer.bottom(), layer.bottom()});
  const std::vector<int64_t> pads(4, (size - 1) / 2);
  const std::string mean = layer.node("AveragePool", {squares},
                                      {{"kernel_shape", std::vector<int64_t>{size, size}},
                                       {"pads", pads},
                                       {"count_include_pad", int64_t{1}}});
  const std::string scaled = layer.node("Mul", {mean, layer.scalar(p.alpha())});
  const std::string sum = layer.node("Add", {scaled, layer.scalar(1)});
  layer.write("Div", {layer.bottom(), layer.node("Pow", {sum, layer.scalar(p.beta())})});
}
EXPORT_LAYER(LRN, write_lrn);

void write_mvn(LayerExport& layer) {
  const MVNParameter& p = layer.message().mvn_param();
  const Shape& x = layer.bottom_shape();
  const std::vector<int64_t> axes = axes_from(x, p.across_channels() ? 1 : 2);
  if (axes.empty())  // each value is its own mean
    return layer.write("Mul", {layer.bottom(), layer.scalar(0)});
  if (layer.options().for_c) {
    const std::string y = layer.graph().unique(layer.name("normalized"));
    std::vector<std::string> results = {y};
    if (layer.options().training) results.push_back(layer.graph().unique(layer.name("inverse")));
    layer.graph().add(
        "Mvn", {layer.bottom()}, results,
        {{"axis", axes[0]}, {"epsilon", p.eps()}, {"divides", int64_t{p.normalize_variance()}}});
    return layer.write("Identity", {y});
  }
  if (!p.normalize_variance()) {
    const std::string mean = layer.reduce("ReduceMean", layer.bottom(), axes, true);
    return layer.write("Sub", {layer.bottom(), mean});
  }
  layer.write("Identity", {normalized(layer, layer.bottom(), axes, p.eps(), true)});
}
EXPORT_LAYER(MVN, write_mvn);

void write_normalize(LayerExport& layer) {
  const std::string x = layer.bottom();
  const bool of_ssd = layer.message().has_norm_param();
  const NormalizeParameter& p = layer.message().norm_param();
  const bool by_sum = !of_ssd && layer.message().normalize_param().normalize_type() == "L1";
  std::vector<int64_t> axes = {1};
  if (of_ssd && p.across_spatial()) axes = axes_from(layer.bottom_shape(), 1);
  std::string norm;
  if (by_sum) {
    norm = layer.node("Add", {layer.reduce("ReduceL1", x, axes, true), layer.scalar(1e-6f)});
  } else {
    const std::string sum = layer.reduce("ReduceSum", layer.node("Mul", {x, x}), axes, true);
    norm = layer.node("Sqrt", {layer.node("Add", {sum, layer.scalar(of_ssd ? p.eps() : 1e-12f)})});
  }
  if (layer.tops() > 1) layer.reshape_to_top(norm, 1);
  if (!of_ssd) return layer.write("Div", {x, norm});
  const std::string unit = layer.node("Div", {x, norm});
  layer.write("Mul", {unit, along_channels(layer, 0)});
}
EXPORT_LAYER(Normalize, write_normalize);

void write_layer_norm(LayerExport& layer) {
  const LayerNormParameter& p = layer.message().layer_norm_param();
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(p.axis());
  if (layer.opset() >= 17) {
    const std::vector<int64_t> row(x.dims().begin() + axis, x.dims().end());
    std::vector<std::string> inputs = {layer.bottom()};
    if (p.scale_bias()) {
      inputs.push_back(layer.parameter(0));
      inputs.push_back(layer.parameter(1));
    } else {
      inputs.push_back(layer.floats(row, std::vector<float>(x.count(axis), 1)));
    }
    return layer.write("LayerNormalization", inputs,
                       {{"axis", int64_t{axis - x.axes()}}, {"epsilon", p.eps()}});
  }
  const std::string y = normalized(layer, layer.bottom(), axes_from(x, axis), p.eps());
  if (!p.scale_bias()) return layer.write("Identity", {y});
  layer.write("Add", {layer.node("Mul", {y, layer.parameter(0)}), layer.parameter(1)});
}
EXPORT_LAYER(LayerNorm, write_layer_norm);

void write_group_norm(LayerExport& layer) {
  const GroupNormParameter& p = layer.message().group_norm_param();
  const Shape& x = layer.bottom_shape();
  const int64_t groups = p.num_groups();
  std::vector<int64_t> whole = layer.extents_of(layer.bottom_value());
  const std::string rows = layer.reshape(layer.bottom(), {whole[0], groups, x.count(1) / groups});
  const std::string unit = layer.node("InstanceNormalization",
                                      {rows, layer.floats({groups}, std::vector<float>(groups, 1)),
                                       layer.floats({groups}, std::vector<float>(groups, 0))},
                                      {{"epsilon", p.eps()}});
  if (!p.scale_bias()) return layer.reshape_to_top(unit);
  const std::string y = layer.reshape(unit, whole);
  layer.write("Add", {layer.node("Mul", {y, along_channels(layer, 0)}), along_channels(layer, 1)});
}
EXPORT_LAYER(GroupNorm, write_group_norm);

void write_channel_norm(LayerExport& layer) {
  layer.write("Identity", {layer.reduce("ReduceL2", layer.bottom(), {1}, true)});
}
EXPORT_LAYER(ChannelNorm, write_channel_norm);

void write_grn(LayerExport& layer) {
  const std::string x = layer.bottom();
  const std::string sum = layer.reduce("ReduceSum", layer.node("Mul", {x, x}), {1}, true);
  const std::string shifted =
      layer.node("Add", {sum, layer.scalar(layer.message().grn_param().bias())});
  layer.write("Div", {x, layer.node("Sqrt", {shifted})});
}
EXPORT_LAYER(GRN, write_grn);

}  // namespace
}  // namespace crema
