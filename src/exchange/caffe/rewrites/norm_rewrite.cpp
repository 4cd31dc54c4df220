// Normalizations.
#include <cmath>

#include "exchange/caffe/rewrites/parts.h"
#include "layers/norm/batch_norm_fields.h"
#include "proto/params/modern_norm.pb.h"
#include "proto/params/normalization.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

CaffeBlob channels_blob(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {{count}, std::move(values)};
}

// factor * x + shift along the channels, as top 0. An empty shift is none.
void write_line(LayerRewrite& layer, int x, const std::vector<float>& factor,
                const std::vector<float>& shift) {
  std::vector<CaffeBlob> blobs = {channels_blob(factor)};
  if (!shift.empty()) blobs.push_back(channels_blob(shift));
  layer.write(
      "Scale", {x},
      [&](LayerParameter* to) {
        if (!shift.empty()) to->mutable_scale_param()->set_bias_term(true);
      },
      std::move(blobs));
}

struct Statistics {
  std::vector<float> mean, variance, number;
  float eps = 0;
  bool of_batch = false;
};

// BatchNorm with stored statistics, and Scale behind it; without BatchNorm, Scale alone.
void write_batch_norm(LayerRewrite& layer, const Statistics& statistics, std::vector<float> factor,
                      std::vector<float> shift) {
  const size_t channels = statistics.mean.size();
  if (!layer.has("BatchNorm")) {
    if (statistics.of_batch)
      layer.refuse("it uses the batch's statistics", "train it with stored statistics");
    factor.resize(channels, 1);
    shift.resize(channels);
    const double by = statistics.number[0] == 0 ? 0 : 1 / double{statistics.number[0]};
    for (size_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(statistics.variance[c] * by + statistics.eps);
      shift[c] = static_cast<float>(shift[c] - statistics.mean[c] * by * inverse * factor[c]);
      factor[c] = static_cast<float>(factor[c] * inverse);
    }
    return write_line(layer, layer.bottom(), factor, shift);
  }
  const FillCaffeLayer fill = [&](LayerParameter* to) {
    to->mutable_batch_norm_param()->set_eps(statistics.eps);
    if (statistics.of_batch) to->mutable_batch_norm_param()->set_use_global_stats(false);
  };
  std::vector<CaffeBlob> blobs = {channels_blob(statistics.mean),
                                  channels_blob(statistics.variance),
                                  channels_blob(statistics.number)};
  if (factor.empty()) return layer.write("BatchNorm", {layer.bottom()}, fill, std::move(blobs));
  write_line(layer, layer.add("BatchNorm", {layer.bottom()}, fill, std::move(blobs)), factor,
             shift);
}

void rewrite_batch_norm(LayerRewrite& layer) {
  const BatchNormParameter& p = layer.message().batch_norm_param();
  const Statistics statistics = {layer.blob_values(0), layer.blob_values(1), layer.blob_values(2),
                                 p.eps(), p.has_use_global_stats() && !p.use_global_stats()};
  write_batch_norm(layer, statistics,
                   layer.blobs().size() > 3 ? layer.blob_values(3) : std::vector<float>(),
                   layer.blobs().size() > 4 ? layer.blob_values(4) : std::vector<float>());
}
REWRITE_LAYER(BatchNorm, rewrite_batch_norm);

// Its forks differ in what they store.
void rewrite_bn(LayerRewrite& layer) {
  const BNParameter& p = layer.message().bn_param();
  if (layer.tops() > 1)
    layer.refuse("its further tops are the batch's statistics", "leave them out");
  const std::vector<float>&factor = layer.blob_values(0), &shift = layer.blob_values(1);
  if (p.bn_mode() == BNParameter::INFERENCE)
    return write_line(layer, layer.bottom(), factor, shift);
  const bool of_segnet =
      p.has_bn_mode() || p.has_scale_filler() || p.has_shift_filler() || p.has_variance_eps();
  Statistics statistics;
  statistics.eps = !of_segnet || p.has_eps() ? p.eps() : p.variance_eps();
  statistics.of_batch = layer.blobs().size() < 4;
  statistics.number = {1};
  statistics.mean.resize(factor.size());
  statistics.variance.resize(factor.size(), 1);
  if (!statistics.of_batch) {
    statistics.mean = layer.blob_values(2);
    statistics.variance = layer.blob_values(3);
  }
  write_batch_norm(layer, statistics, factor, shift);
}
REWRITE_LAYER(BN, rewrite_bn);

// A fork keeps the factors of a Scale within bounds; Caffe's Bias is a Scale of ones.
void rewrite_scale(LayerRewrite& layer) {
  const ScaleParameter& p = layer.message().scale_param();
  std::vector<CaffeBlob> blobs = layer.blobs();
  if (!blobs.empty() && (p.has_min_value() || p.has_max_value())) {
    std::vector<float> values = blobs[0].copy();
    for (float& value : values) {
      if (p.has_min_value()) value = std::max(value, p.min_value());
      if (p.has_max_value()) value = std::min(value, p.max_value());
    }
    blobs[0] = {blobs[0].shape, std::move(values)};
  }
  layer.write_changed(
      "Scale",
      [](LayerParameter* to) {
        to->mutable_scale_param()->clear_min_value();
        to->mutable_scale_param()->clear_max_value();
      },
      std::move(blobs));
}
REWRITE_LAYER(Scale, rewrite_scale);

void rewrite_bias(LayerRewrite& layer) {
  if (layer.bottoms() > 1) {
    if (layer.bottom_shape(0) == layer.bottom_shape(1))
      return write_sum(layer, {layer.bottom(0), layer.bottom(1)}, {});
    layer.refuse("its summands are computed", "repeat them with Tile, and write Eltwise");
  }
  const BiasParameter p = layer.message().bias_param();
  const CaffeBlob& bias = layer.blobs()[0];
  layer.write("Scale", {layer.bottom()},
              [&](LayerParameter* to) {
                ScaleParameter& scale = *to->mutable_scale_param();
                scale.set_axis(p.axis());
                scale.set_num_axes(p.num_axes());
                scale.set_bias_term(true);
              },
              {{bias.shape, std::vector<float>(bias.values.size(), 1)}, bias});
}
REWRITE_LAYER(Bias, rewrite_bias);

// Sums over the channels, in each place: (N, 1, ...).
int channel_sums(LayerRewrite& layer, int x) {
  return mixed(layer, x, 1, std::vector<float>(layer.shape_of(x)[1], 1));
}

// A value for all channels as a value for each, times these factors.
int for_channels(LayerRewrite& layer, int x, const std::vector<float>& factors) {
  return mixed(layer, x, static_cast<int64_t>(factors.size()), factors);
}

// x times a ^ power of the sums of these terms along the channels, plus eps.
void write_normalized(LayerRewrite& layer, int terms, double eps, double power,
                      const std::vector<float>& factors) {
  const int norm = power_of(layer, channel_sums(layer, terms), 1, eps, power);
  write_product(layer, {layer.bottom(), for_channels(layer, norm, factors)});
}

void rewrite_normalize(LayerRewrite& layer) {
  const int x = layer.bottom();
  const Shape shape = layer.bottom_shape();
  const bool of_ssd = layer.message().has_norm_param();
  const NormalizeParameter& p = layer.message().norm_param();
  if (layer.tops() > 1) layer.refuse("its second top has the norms", "leave it out");
  if (of_ssd && p.channel_shared() &&
      layer.dialect().has_field("Normalize", "norm_param", "channel_shared")) {
    // One factor for all channels as one for each.
    return layer.write_changed(
        "Normalize",
        [](LayerParameter* to) { to->mutable_norm_param()->set_channel_shared(false); },
        {{{shape[1]}, std::vector<float>(shape[1], layer.blob_values(0)[0])}});
  }
  std::vector<float> factors(shape[1], 1);
  if (of_ssd)
    for (size_t c = 0; c < factors.size(); ++c)
      factors[c] = layer.blob_values(0)[p.channel_shared() ? 0 : c];
  if (!of_ssd && layer.message().normalize_param().normalize_type() == "L1")
    return write_normalized(layer, layer.add("AbsVal", {x}), 1e-6, -1, factors);
  const int squares = product_of(layer, {x, x});
  const double eps = of_ssd ? p.eps() : 1e-12;
  if (!of_ssd || !p.across_spatial()) return write_normalized(layer, squares, eps, -0.5, factors);
  // Over the whole image.
  const int rows = reshaped(layer, squares, {shape[0], shape.count(1)});
  const int norm = power_of(layer, channel_sums(layer, rows), 1, eps, -0.5);
  const int each = for_channels(layer, norm, std::vector<float>(shape.count(1), 1));
  write_line(layer, product_of(layer, {x, reshaped(layer, each, shape.dims())}), factors, {});
}
REWRITE_LAYER(Normalize, rewrite_normalize);

void rewrite_grn(LayerRewrite& layer) {
  const int squares = product_of(layer, {layer.bottom(), layer.bottom()});
  write_normalized(layer, squares, layer.message().grn_param().bias(), -0.5,
                   std::vector<float>(layer.bottom_shape()[1], 1));
}
REWRITE_LAYER(GRN, rewrite_grn);

void rewrite_channel_norm(LayerRewrite& layer) {
  const int squares = product_of(layer, {layer.bottom(), layer.bottom()});
  write_power(layer, channel_sums(layer, squares), 1, 0, 0.5);
}
REWRITE_LAYER(ChannelNorm, rewrite_channel_norm);

// Each value of these rows as its row's mean, by inner products with ones.
int means_of_rows(LayerRewrite& layer, int rows) {
  const int64_t length = layer.shape_of(rows)[1];
  return mixed(layer, rows, 1, std::vector<float>(length, 1 / static_cast<float>(length)));
}
int for_rows(LayerRewrite& layer, int x, int64_t length) {
  return mixed(layer, x, length, std::vector<float>(length, 1));
}
int centred_rows(LayerRewrite& layer, int rows) {
  const int mean = for_rows(layer, means_of_rows(layer, rows), layer.shape_of(rows)[1]);
  return sum_of(layer, {rows, mean}, {1, -1});
}

// Rows with mean 0 and variance 1. MVN adds eps to the deviation, not to the variance.
int normalized_rows(LayerRewrite& layer, int rows, float eps, bool of_deviation = false) {
  const int centred = centred_rows(layer, rows);
  const int variance = means_of_rows(layer, product_of(layer, {centred, centred}));
  const int inverse = of_deviation
                          ? power_of(layer, power_of(layer, variance, 1, 0, 0.5), 1, eps, -1)
                          : power_of(layer, variance, 1, eps, -0.5);
  return product_of(layer, {centred, for_rows(layer, inverse, layer.shape_of(rows)[1])});
}

void rewrite_mvn(LayerRewrite& layer) {
  const MVNParameter& p = layer.message().mvn_param();
  const Shape x = layer.bottom_shape();
  const int64_t count = x.count(0, p.across_channels() ? 1 : std::min(2, x.axes()));
  const int rows = reshaped(layer, layer.bottom(), {count, x.count() / count});
  write_reshaped(layer,
                 p.normalize_variance() ? normalized_rows(layer, rows, p.eps(), true)
                                        : centred_rows(layer, rows),
                 x);
}
REWRITE_LAYER(MVN, rewrite_mvn);

// Sums over rows, as an inner product with one output.
void rewrite_reduction(LayerRewrite& layer) {
  const ReductionParameter& p = layer.message().reduction_param();
  const Shape x = layer.bottom_shape();
  const int axis = x.canonical_axis(p.axis());
  const int64_t length = x.count(axis);
  int rows = layer.bottom();
  float factor = p.coeff();
  switch (p.operation()) {
    case ReductionParameter::SUM:
      break;
    case ReductionParameter::ASUM:
      rows = layer.add("AbsVal", {rows});
      break;
    case ReductionParameter::SUMSQ:
      rows = product_of(layer, {rows, rows});
      break;
    case ReductionParameter::MEAN:
      factor /= static_cast<float>(length);
      break;
    case ReductionParameter::TOPK:
      layer.refuse("it looks for the largest values", "end the net before it with -cut");
  }
  if (axis == 0) layer.refuse("it joins the images of a batch", "write axis: 1");
  rows = reshaped(layer, rows, {x.count(0, axis), length});
  write_reshaped(layer, mixed(layer, rows, 1, std::vector<float>(length, factor)),
                 layer.top_shape());
}
REWRITE_LAYER(Reduction, rewrite_reduction);

void rewrite_layer_norm(LayerRewrite& layer) {
  const LayerNormParameter& p = layer.message().layer_norm_param();
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(p.axis());
  const int64_t length = x.count(axis);
  const int rows = reshaped(layer, layer.bottom(), {x.count(0, axis), length});
  int y = normalized_rows(layer, rows, p.eps());
  if (p.scale_bias()) {
    y = layer.add("Scale", {y},
                  [](LayerParameter* to) { to->mutable_scale_param()->set_bias_term(true); },
                  {channels_blob(layer.blob_values(0)), channels_blob(layer.blob_values(1))});
  }
  write_reshaped(layer, y, x);
}
REWRITE_LAYER(LayerNorm, rewrite_layer_norm);

void rewrite_group_norm(LayerRewrite& layer) {
  const GroupNormParameter& p = layer.message().group_norm_param();
  const Shape& x = layer.bottom_shape();
  const int64_t groups = p.num_groups();
  const int rows = reshaped(layer, layer.bottom(), {x[0] * groups, x.count(1) / groups});
  const int y = normalized_rows(layer, rows, p.eps());
  if (!p.scale_bias()) return write_reshaped(layer, y, x);
  write_line(layer, reshaped(layer, y, x.dims()), layer.blob_values(0), layer.blob_values(1));
}
REWRITE_LAYER(GroupNorm, rewrite_group_norm);

}  // namespace
}  // namespace crema
