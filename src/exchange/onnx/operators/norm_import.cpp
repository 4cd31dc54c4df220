// Normalizations.
#include "exchange/onnx/operator_import.h"
#include "proto/params/modern_norm.pb.h"
#include "proto/params/normalization.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

LayerBlob channel_blob(const OperatorImport& op, int input, const char* what, int64_t channels) {
  const OnnxTensor& values = op.constant(input, what);
  require(values.count() == channels, values.count(), " values of ", what, " for ", channels,
          " channels");
  return {Shape{channels}, values.as_floats()};
}

void read_batch_norm(OperatorImport& op) {
  op.only_outputs(1);
  require(op.int_of("training_mode", 0) == 0, "it is in training mode");
  require(op.axes() >= 2, "its input has no channels");
  const int64_t channels = op.shape()[1];
  const LayerBlob scale = channel_blob(op, 1, "scale", channels);
  const LayerBlob bias = channel_blob(op, 2, "bias", channels);
  const std::string unit = op.layer("BatchNorm", {op.blob(0)},
                                    [&](LayerParameter* layer) {
                                      const float eps = op.float_of("epsilon", 1e-5f);
                                      layer->mutable_batch_norm_param();
                                      if (eps != 1e-5f)
                                        layer->mutable_batch_norm_param()->set_eps(eps);
                                    },
                                    {channel_blob(op, 3, "mean", channels),
                                     channel_blob(op, 4, "variance", channels),
                                     {Shape{1}, {1}}});
  op.give(op.layer("Scale", {unit},
                   [](LayerParameter* layer) { layer->mutable_scale_param()->set_bias_term(true); },
                   {scale, bias}));
}
IMPORT_OPERATOR(BatchNormalization, read_batch_norm);

std::string group_norm(OperatorImport& op, int64_t groups, const LayerBlob& scale,
                       const LayerBlob& bias) {
  return op.layer("GroupNorm", {op.blob(0)},
                  [&](LayerParameter* layer) {
                    const float eps = op.float_of("epsilon", 1e-5f);
                    GroupNormParameter* const p = layer->mutable_group_norm_param();
                    p->set_num_groups(static_cast<uint32_t>(groups));
                    if (eps != 1e-5f) p->set_eps(eps);
                  },
                  {scale, bias});
}

void read_instance_norm(OperatorImport& op) {
  require(op.axes() >= 2, "its input has no channels");
  const int64_t channels = op.shape()[1];
  op.give(group_norm(op, channels, channel_blob(op, 1, "scale", channels),
                     channel_blob(op, 2, "bias", channels)));
}
IMPORT_OPERATOR(InstanceNormalization, read_instance_norm);

// Scale and bias are given once for each group before opset 21, for each channel since.
void read_group_norm(OperatorImport& op) {
  require(op.axes() >= 2, "its input has no channels");
  const int64_t channels = op.shape()[1], groups = op.int_of("num_groups", 0);
  require(groups > 0 && channels % groups == 0, groups, " groups do not divide ", channels,
          " channels");
  const int64_t given = op.opset() < 21 ? groups : channels;
  LayerBlob scale = channel_blob(op, 1, "scale", given), bias = channel_blob(op, 2, "bias", given);
  for (LayerBlob* blob : {&scale, &bias}) {
    std::vector<float> values;
    for (int64_t c = 0; c < channels; ++c) values.push_back(blob->values[c * given / channels]);
    *blob = {Shape{channels}, values};
  }
  op.give(group_norm(op, groups, scale, bias));
}
IMPORT_OPERATOR(GroupNormalization, read_group_norm);

void read_layer_norm(OperatorImport& op) {
  op.only_outputs(1);
  const Shape& x = op.shape();
  const int axis = OperatorImport::axis_in(op.int_of("axis", -1), x.axes());
  const Shape row(std::vector<int64_t>(x.dims().begin() + axis, x.dims().end()));
  const OnnxTensor& scale = op.constant(1, "scale");
  std::vector<float> bias(row.count());
  if (op.has(2)) bias = op.constant(2, "bias").as_floats();
  require(scale.count() == row.count() && static_cast<int64_t>(bias.size()) == row.count(),
          scale.count(), " values of scale for rows of ", row.brief());
  op.give(op.layer("LayerNorm", {op.blob(0)},
                   [&](LayerParameter* layer) {
                     const float eps = op.float_of("epsilon", 1e-5f);
                     LayerNormParameter* const p = layer->mutable_layer_norm_param();
                     if (axis != x.axes() - 1) p->set_axis(axis);
                     if (eps != 1e-5f) p->set_eps(eps);
                   },
                   {{row, scale.as_floats()}, {row, bias}}));
}
IMPORT_OPERATOR(LayerNormalization, read_layer_norm);

void read_lrn(OperatorImport& op) {
  const int64_t size = op.int_of("size", 0);
  require(size > 0 && size % 2 == 1 && size < kMaxOnnxElements, "size ", size, " is not odd");
  op.give(op.layer("LRN", {op.blob(0)}, [&](LayerParameter* layer) {
    LRNParameter* const p = layer->mutable_lrn_param();
    p->set_local_size(static_cast<uint32_t>(size));
    p->set_alpha(op.float_of("alpha", 1e-4f));
    p->set_beta(op.float_of("beta", 0.75f));
    const float bias = op.float_of("bias", 1);
    if (bias != 1) p->set_k(bias);
  }));
}
IMPORT_OPERATOR(LRN, read_lrn);

void read_lp_norm(OperatorImport& op) {
  const int axis = OperatorImport::axis_in(op.int_of("axis", -1), op.axes());
  const int64_t p = op.int_of("p", 2);
  require(axis == 1 && (p == 1 || p == 2), "only norms 1 and 2 along axis 1 have a layer");
  op.give(op.layer("Normalize", {op.blob(0)}, [&](LayerParameter* layer) {
    layer->mutable_normalize_param()->set_normalize_type(p == 1 ? "L1" : "L2");
  }));
}
IMPORT_OPERATOR(LpNormalization, read_lp_norm);

}  // namespace
}  // namespace crema
