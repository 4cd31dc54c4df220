// Functions of each value.
#include <cmath>
#include <limits>

#include "exchange/onnx/operator_import.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

template <const char* kType>
void read_as(OperatorImport& op) {
  op.give(op.layer(kType, {op.blob(0)}));
}
constexpr char kReluLayer[] = "ReLU", kSigmoidLayer[] = "Sigmoid", kTanhLayer[] = "TanH",
               kSoftplusLayer[] = "BNLL", kAbsLayer[] = "AbsVal", kMishLayer[] = "Mish",
               kHardSwishLayer[] = "HardSwish", kExpLayer[] = "Exp", kLogLayer[] = "Log";
IMPORT_OPERATOR(Relu, read_as<kReluLayer>);
IMPORT_OPERATOR(Sigmoid, read_as<kSigmoidLayer>);
IMPORT_OPERATOR(Tanh, read_as<kTanhLayer>);
IMPORT_OPERATOR(Softplus, read_as<kSoftplusLayer>);
IMPORT_OPERATOR(Abs, read_as<kAbsLayer>);
IMPORT_OPERATOR(Mish, read_as<kMishLayer>);
IMPORT_OPERATOR(HardSwish, read_as<kHardSwishLayer>);
IMPORT_OPERATOR(Exp, read_as<kExpLayer>);
IMPORT_OPERATOR(Log, read_as<kLogLayer>);

void read_leaky_relu(OperatorImport& op) {
  op.give(op.layer("ReLU", {op.blob(0)}, [&](LayerParameter* layer) {
    layer->mutable_relu_param()->set_negative_slope(op.float_of("alpha", 0.01f));
  }));
}
IMPORT_OPERATOR(LeakyRelu, read_leaky_relu);

// Slopes are one number, or one for each channel.
void read_prelu(OperatorImport& op) {
  const OnnxTensor& slopes = op.constant(1, "the slopes");
  if (slopes.count() == 1 && op.axes() >= 2) {
    return op.give(op.layer(
        "PReLU", {op.blob(0)},
        [](LayerParameter* layer) { layer->mutable_prelu_param()->set_channel_shared(true); },
        {{Shape(), slopes.as_floats()}}));
  }
  const Shape& x = op.shape();
  const int axis = slopes.shape.axes() - (x.axes() - 1);  // that of the channels in the slopes
  require(x.axes() >= 2 && axis >= 0 && axis < slopes.shape.axes() && slopes.shape[axis] == x[1] &&
              slopes.count() == x[1],
          "slopes of ", slopes.shape.brief(), " are not one for each channel of ", x.brief());
  op.give(op.layer("PReLU", {op.blob(0)},
                   [](LayerParameter* layer) { layer->mutable_prelu_param(); },
                   {{Shape{x[1]}, slopes.as_floats()}}));
}
IMPORT_OPERATOR(PRelu, read_prelu);

void read_elu(OperatorImport& op) {
  op.give(op.layer("ELU", {op.blob(0)}, [&](LayerParameter* layer) {
    const float alpha = op.float_of("alpha", 1);
    if (alpha != 1) layer->mutable_elu_param()->set_alpha(alpha);
  }));
}
IMPORT_OPERATOR(Elu, read_elu);

void read_selu(OperatorImport& op) {
  op.give(op.layer("SELU", {op.blob(0)}, [&](LayerParameter* layer) {
    SELUParameter* const p = layer->mutable_selu_param();
    p->set_alpha(op.float_of("alpha", 1.67326319217681884765625f));
    p->set_lambda(op.float_of("gamma", 1.05070102214813232421875f));
  }));
}
IMPORT_OPERATOR(Selu, read_selu);

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
void read_celu(OperatorImport& op) {
  const float alpha = op.float_of("alpha", 1);
  require(alpha > 0, "alpha ", alpha, " is not positive");
  const std::string y = op.layer("ELU", {op.power(op.blob(0), 1, 1 / alpha, 0)});
  op.give(op.power(y, 1, alpha, 0));
}
IMPORT_OPERATOR(Celu, read_celu);

void read_hard_sigmoid(OperatorImport& op) {
  op.give(op.layer("HardSigmoid", {op.blob(0)}, [&](LayerParameter* layer) {
    const float alpha = op.float_of("alpha", 0.2f), beta = op.float_of("beta", 0.5f);
    HardSigmoidParameter* const p = layer->mutable_hard_sigmoid_param();
    if (std::abs(alpha - 1.f / 6) > 1e-6f) p->set_alpha(alpha);
    if (beta != 0.5f) p->set_beta(beta);
  }));
}
IMPORT_OPERATOR(HardSigmoid, read_hard_sigmoid);

void read_gelu(OperatorImport& op) {
  const std::string how = op.string_of("approximate", "none");
  op.give(op.layer("GELU", {op.blob(0)}, [&](LayerParameter* layer) {
    if (how == "tanh") layer->mutable_gelu_param()->set_approximate(true);
  }));
}
IMPORT_OPERATOR(Gelu, read_gelu);

// A layer only as part of a GELU (import_patterns.cpp).
void read_erf(OperatorImport& op) {
  const std::string x = op.blob(0);
  op.give(op.unsupported("Erf", {x}, op.blob_shape(x),
                         "no layer computes Erf, except as part of a GELU"));
}
IMPORT_OPERATOR(Erf, read_erf);

void read_softsign(OperatorImport& op) {
  const std::string x = op.blob(0);
  const std::string factor = op.power(op.layer("AbsVal", {x}), -1, 1, 1);
  op.give(op.layer("Eltwise", {x, factor}, [](LayerParameter* layer) {
    layer->mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
  }));
}
IMPORT_OPERATOR(Softsign, read_softsign);

std::string above(OperatorImport& op, const std::string& x, float bound) {
  return op.layer("Threshold", {x}, [&](LayerParameter* layer) {
    if (bound != 0) layer->mutable_threshold_param()->set_threshold(bound);
  });
}

void read_thresholded_relu(OperatorImport& op) {
  const std::string x = op.blob(0);
  const std::string passes = above(op, x, op.float_of("alpha", 1));
  op.give(op.layer("Eltwise", {x, passes}, [](LayerParameter* layer) {
    layer->mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
  }));
}
IMPORT_OPERATOR(ThresholdedRelu, read_thresholded_relu);

float bound_of(const OperatorImport& op, int input, const char* name, float otherwise) {
  if (op.opset() < 11) return op.float_of(name, otherwise);
  if (!op.has(input)) return otherwise;
  return op.number(input, name);
}

void read_clip(OperatorImport& op) {
  constexpr float kFar = std::numeric_limits<float>::max();
  const float low = bound_of(op, 1, "min", -kFar), high = bound_of(op, 2, "max", kFar);
  if (low == 0 && high == 6) return op.give(op.layer("ReLU6", {op.blob(0)}));
  if (low == 0 && high >= kFar) return op.give(op.layer("ReLU", {op.blob(0)}));
  op.give(op.layer("Clip", {op.blob(0)}, [&](LayerParameter* layer) {
    layer->mutable_clip_param()->set_min(std::max(low, -kFar));
    layer->mutable_clip_param()->set_max(std::min(high, kFar));
  }));
}
IMPORT_OPERATOR(Clip, read_clip);

void read_neg(OperatorImport& op) { op.give(op.power(op.blob(0), 1, -1, 0)); }
void read_sqrt(OperatorImport& op) { op.give(op.power(op.blob(0), 0.5f, 1, 0)); }
void read_reciprocal(OperatorImport& op) { op.give(op.power(op.blob(0), -1, 1, 0)); }
IMPORT_OPERATOR(Neg, read_neg);
IMPORT_OPERATOR(Sqrt, read_sqrt);
IMPORT_OPERATOR(Reciprocal, read_reciprocal);

void read_identity(OperatorImport& op) { op.pass_on(); }
IMPORT_OPERATOR(Identity, read_identity);

void read_dropout(OperatorImport& op) {
  op.only_outputs(1);
  if (op.has(2)) require(op.number(2, "training_mode") == 0, "it drops values in inference too");
  const float ratio =
      op.opset() < 12 ? op.float_of("ratio", 0.5f) : (op.has(1) ? op.number(1, "ratio") : 0.5f);
  op.give(op.layer("Dropout", {op.blob(0)}, [&](LayerParameter* layer) {
    if (ratio != 0.5f) layer->mutable_dropout_param()->set_dropout_ratio(ratio);
  }));
}
IMPORT_OPERATOR(Dropout, read_dropout);

// Blobs are floats: whole numbers pass, and others may become indices.
void read_cast(OperatorImport& op) {
  const int64_t to = op.int_of("to", onnx::TensorProto::FLOAT);
  const bool to_float = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
                        to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
  if (to_float || op.value(0).is_integer) return op.pass_on();
  require(to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32,
          "no layer rounds values to whole numbers");
  op.give_index(op.index_blob(0));
}
IMPORT_OPERATOR(Cast, read_cast);

void read_cast_like(OperatorImport& op) {
  require(!op.value(1).is_integer || op.value(0).is_integer,
          "no layer rounds values to whole numbers");
  op.pass_on();
}
IMPORT_OPERATOR(CastLike, read_cast_like);

// Before opset 13 the axes from `axis` on are one.
void read_softmax(OperatorImport& op) {
  const std::string x = op.blob(0);
  const Shape shape = op.blob_shape(x);
  const bool joins = op.opset() < 13;
  const int axis = OperatorImport::axis_in(op.int_of("axis", joins ? 1 : -1), shape.axes());
  const bool flat = joins && shape.count(axis + 1) != 1;
  std::string y = flat ? op.reshape(x, {shape.count(0, axis), shape.count(axis)}) : x;
  const int of = flat ? 1 : axis;
  y = op.layer("Softmax", {y}, [&](LayerParameter* layer) {
    if (of != 1) layer->mutable_softmax_param()->set_axis(of);
  });
  if (op.type() == "LogSoftmax") y = op.layer("Log", {y});
  op.give(op.reshape(y, shape.dims()));
}
IMPORT_OPERATOR(Softmax, read_softmax);
IMPORT_OPERATOR(LogSoftmax, read_softmax);

}  // namespace
}  // namespace crema
