// Arithmetic with constants, and of blobs of different shapes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/arithmetic.h"
#include "exchange/onnx/operators/broadcast.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

std::string eltwise(OperatorImport& op, const std::vector<std::string>& bottoms,
                    EltwiseParameter::EltwiseOp operation, const std::vector<float>& coeffs = {}) {
  return op.layer("Eltwise", bottoms, [&](LayerParameter* layer) {
    if (operation == EltwiseParameter::SUM && coeffs.empty()) return;
    EltwiseParameter* const p = layer->mutable_eltwise_param();
    if (operation != EltwiseParameter::SUM) p->set_operation(operation);
    for (const float coeff : coeffs) p->add_coeff(coeff);
  });
}

// The blob with axes of extent 1 in front, as many as the result has, stretched where a constant
// operand is longer.
std::string stretched(OperatorImport& op, std::string x, const Shape& to) {
  std::vector<int64_t> extents = op.blob_shape(x).dims();
  while (static_cast<int>(extents.size()) < to.axes()) extents.insert(extents.begin(), 1);
  x = op.reshape(x, extents);
  for (int axis = 0; axis < to.axes(); ++axis)
    if (extents[axis] != to[axis]) x = op.tile(x, axis, to[axis]);
  return x;
}

// Axes [first, end) of the result along which an operand's values differ.
struct Along {
  int first = 0, end = 0;
};

Along along(const Shape& operand, const Shape& result) {
  const int added = result.axes() - operand.axes();
  Along a{result.axes(), 0};
  for (int axis = 0; axis < operand.axes(); ++axis) {
    if (operand[axis] == 1) continue;
    a.first = std::min(a.first, axis + added);
    a.end = axis + added + 1;
  }
  if (a.end == 0) a.first = 0;
  return a;
}

// Values of a constant for each position of these axes.
LayerBlob laid_values(const OnnxTensor& constant, const Along& axes, const Shape& result,
                      float (*change)(float)) {
  LayerBlob blob;
  for (int axis = axes.first; axis < axes.end; ++axis) blob.shape.push_back(result[axis]);
  Shape from;
  const int added = result.axes() - constant.shape.axes();
  for (int axis = axes.first; axis < axes.end; ++axis) {
    from.push_back(axis < added ? 1 : constant.shape[axis - added]);
  }
  const std::vector<float> values = constant.as_floats();
  Walk walk(blob.shape, {broadcast_steps(from, blob.shape)});
  for (int64_t i = 0, n = blob.shape.count(); i < n; ++i, walk.next())
    blob.values.push_back(change(values[walk.offset(0)]));
  return blob;
}

float same_number(float x) { return x; }
float negative_number(float x) { return -x; }
float inverse_number(float x) { return 1 / x; }

std::string scale_by(OperatorImport& op, const std::string& x, const LayerBlob& blob, int axis) {
  return op.layer("Scale", {x},
                  [&](LayerParameter* layer) {
                    ScaleParameter* const p = layer->mutable_scale_param();
                    if (axis != 1) p->set_axis(axis);
                    if (blob.shape.axes() != 1) p->set_num_axes(blob.shape.axes());
                  },
                  {blob});
}

std::string bias_by(OperatorImport& op, const std::string& x, const LayerBlob& blob, int axis) {
  return op.layer("Bias", {x},
                  [&](LayerParameter* layer) {
                    BiasParameter* const p = layer->mutable_bias_param();
                    if (axis != 1) p->set_axis(axis);
                    if (blob.shape.axes() != 1) p->set_num_axes(blob.shape.axes());
                  },
                  {blob});
}

std::string with_number(OperatorImport& op, const std::string& type, const std::string& x, float c,
                        bool constant_first) {
  if (type == "Add") return op.power(x, 1, 1, c);
  if (type == "Mul") return op.power(x, 1, c, 0);
  if (type == "Sub") return constant_first ? op.power(x, 1, -1, c) : op.power(x, 1, 1, -c);
  if (!constant_first) return op.power(x, 1, 1 / c, 0);
  require(c != 0, "it divides zero");
  return op.power(x, -1, 1 / c, 0);
}

std::string with_constant(OperatorImport& op, const std::string& type, std::string x,
                          const OnnxTensor& constant, bool constant_first) {
  const Shape result = broadcast_shape(op.blob_shape(x), constant.shape);
  x = stretched(op, x, result);
  if (constant.count() == 1)
    return with_number(op, type, x, constant.as_floats()[0], constant_first);
  const Along axes = along(constant.shape, result);
  const auto values = [&](float (*change)(float)) {
    return laid_values(constant, axes, result, change);
  };
  if (type == "Add") return bias_by(op, x, values(same_number), axes.first);
  if (type == "Mul") return scale_by(op, x, values(same_number), axes.first);
  if (type == "Sub" && !constant_first) return bias_by(op, x, values(negative_number), axes.first);
  if (type == "Sub") return bias_by(op, op.power(x, 1, -1, 0), values(same_number), axes.first);
  if (!constant_first) return scale_by(op, x, values(inverse_number), axes.first);
  return scale_by(op, op.power(x, -1, 1, 0), values(same_number), axes.first);
}

// x and a smaller blob, which has axes [first, end) of x: Scale or Bias with two bottoms.
std::string laid_along(OperatorImport& op, const char* type, const std::string& x,
                       const std::string& small) {
  const Shape whole = op.blob_shape(x), part = op.blob_shape(small);
  Along axes = along(part, whole);
  // The batch, even if it has one sample.
  const bool of_batch = part.axes() == whole.axes() && part.axes() > 0 && part[0] == whole[0];
  if (of_batch && axes.first > 0) {
    bool all = true;
    for (int axis = 1; axis < axes.first; ++axis) all = all && whole[axis] == part[axis];
    if (all) axes.first = 0;
    axes.end = std::max(axes.end, 1);
  } else if (of_batch) {
    axes.end = std::max(axes.end, 1);
  }
  std::vector<int64_t> extents;
  bool even = true;  // nothing stretches within the axes
  const int added = whole.axes() - part.axes();
  for (int axis = axes.first; axis < axes.end; ++axis) {
    extents.push_back(axis < added ? 1 : part[axis - added]);
    even = even && extents.back() == whole[axis];
  }
  std::string y = op.reshape(small, extents);
  if (!even) {
    for (int i = 0; i < static_cast<int>(extents.size()); ++i)
      if (extents[i] != whole[axes.first + i]) y = op.tile(y, i, whole[axes.first + i]);
  }
  return op.layer(type, {x, y}, [&](LayerParameter* layer) {
    if (axes.first == 1) return;
    if (layer->type() == "Scale")
      layer->mutable_scale_param()->set_axis(axes.first);
    else
      layer->mutable_bias_param()->set_axis(axes.first);
  });
}

std::string negated(OperatorImport& op, const std::string& x) { return op.power(x, 1, -1, 0); }

std::string of_blobs(OperatorImport& op, const std::string& type, std::string a, std::string b) {
  if (type == "Div") {
    b = op.power(b, -1, 1, 0);
    return of_blobs(op, "Mul", a, b);
  }
  const Shape of_a = op.blob_shape(a), of_b = op.blob_shape(b);
  const Shape result = broadcast_shape(of_a, of_b);
  if (of_a == of_b) {
    if (a == b && type == "Mul") return op.power(a, 2, 1, 0);
    if (a == b && type == "Add") return op.power(a, 1, 2, 0);
    if (type == "Max") return eltwise(op, {a, b}, EltwiseParameter::MAX);
    if (type == "Mul") return eltwise(op, {a, b}, EltwiseParameter::PROD);
    if (type == "Sub") return eltwise(op, {a, b}, EltwiseParameter::SUM, {1, -1});
    return eltwise(op, {a, b}, EltwiseParameter::SUM);
  }
  if (type == "Max") {
    a = stretched(op, a, result);
    b = stretched(op, b, result);
    return eltwise(op, {a, b}, EltwiseParameter::MAX);
  }
  if (type == "Sub") return of_blobs(op, "Add", a, negated(op, b));
  if (of_a != result && of_b == result) std::swap(a, b);
  a = stretched(op, a, result);
  return laid_along(op, type == "Mul" ? "Scale" : "Bias", a, b);
}

std::string combined(OperatorImport& op, const std::string& type, const std::string& a, int input) {
  if (op.is_constant(input)) return with_constant(op, type, a, *op.value(input).constant, false);
  return of_blobs(op, type, a, op.blob(input));
}

}  // namespace

std::string combined_inputs(OperatorImport& op, const std::string& type) {
  if (type == "Max") return of_blobs(op, type, op.blob(0), op.blob(1));
  if (op.is_constant(0)) return with_constant(op, type, op.blob(1), *op.value(0).constant, true);
  return combined(op, type, op.blob(0), 1);
}

namespace {

void read_arithmetic(OperatorImport& op) {
  require(!(op.type() == "Div" && op.value(0).is_integer && op.value(1).is_integer),
          "no layer divides whole numbers");
  op.give(combined_inputs(op, op.type()));
}
IMPORT_OPERATOR(Add, read_arithmetic);
IMPORT_OPERATOR(Sub, read_arithmetic);
IMPORT_OPERATOR(Mul, read_arithmetic);
IMPORT_OPERATOR(Div, read_arithmetic);

// One of two values, by a condition of zeros and ones: sums of products, so both must be finite.
std::string where_part(OperatorImport& op, const std::string& condition, int input) {
  if (!op.is_constant(input)) return of_blobs(op, "Mul", condition, op.blob(input));
  const OnnxTensor& values = *op.value(input).constant;
  for (const float value : values.as_floats())
    require(std::isfinite(value), "no layer chooses ", value);
  return with_constant(op, "Mul", condition, values, false);
}

void read_where(OperatorImport& op) {
  require(op.value(0).is_integer, "its condition is no comparison");
  const std::string condition = op.blob(0);
  const std::string first = where_part(op, condition, 1);
  const std::string second = where_part(op, op.power(condition, 1, -1, 1), 2);
  op.give(of_blobs(op, "Add", first, second));
}
IMPORT_OPERATOR(Where, read_where);

// Blobs of one shape are the bottoms of one layer.
bool one_eltwise(const OperatorImport& op) {
  for (int i = 0; i < op.inputs(); ++i)
    if (op.is_constant(i) || op.shape(i) != op.shape(0)) return false;
  return op.inputs() > 1;
}

void read_sum(OperatorImport& op) {
  const float share = op.type() == "Mean" ? 1.f / static_cast<float>(op.inputs()) : 1;
  if (one_eltwise(op)) {
    std::vector<std::string> bottoms;
    for (int i = 0; i < op.inputs(); ++i) bottoms.push_back(op.blob(i));
    std::vector<float> coeffs;
    if (share != 1) coeffs.assign(bottoms.size(), share);
    return op.give(eltwise(op, bottoms, EltwiseParameter::SUM, coeffs));
  }
  std::string y = op.blob(0);
  for (int i = 1; i < op.inputs(); ++i) y = combined(op, "Add", y, i);
  op.give(op.power(y, 1, share, 0));
}
IMPORT_OPERATOR(Sum, read_sum);
IMPORT_OPERATOR(Mean, read_sum);

// A bound that is a number is a Clip.
std::string bounded(OperatorImport& op, const std::string& x, float bound, bool below) {
  constexpr float kFar = std::numeric_limits<float>::max();
  if (below && bound == 0) return op.layer("ReLU", {x});
  return op.layer("Clip", {x}, [&](LayerParameter* layer) {
    layer->mutable_clip_param()->set_min(below ? bound : -kFar);
    layer->mutable_clip_param()->set_max(below ? kFar : bound);
  });
}

// The least is the largest of the negative.
void read_extremum(OperatorImport& op) {
  const bool largest = op.type() == "Max";
  int first = 0;
  while (op.is_constant(first)) ++first;
  std::string y = op.blob(first);
  for (int i = 0; i < op.inputs(); ++i) {
    if (i == first) continue;
    if (op.is_constant(i) && op.value(i).constant->count() == 1 &&
        op.axes(i) <= op.blob_shape(y).axes()) {
      y = bounded(op, y, op.value(i).constant->as_floats()[0], largest);
    } else if (largest) {
      y = of_blobs(op, "Max", y, op.blob(i));
    } else {
      y = negated(op, of_blobs(op, "Max", negated(op, y), negated(op, op.blob(i))));
    }
  }
  op.give(y);
}
IMPORT_OPERATOR(Max, read_extremum);
IMPORT_OPERATOR(Min, read_extremum);

void read_pow(OperatorImport& op) {
  if (op.is_constant(1) && op.value(1).constant->count() == 1) {
    const std::string x = stretched(op, op.blob(0), broadcast_shape(op.shape(0), op.shape(1)));
    return op.give(op.power(x, op.value(1).constant->as_floats()[0], 1, 0));
  }
  require(
      op.is_constant(0) && op.value(0).constant->count() == 1 && op.value(0).constant->at(0) > 0,
      "either the base or the exponent must be a constant number");
  const std::string x = stretched(op, op.blob(1), broadcast_shape(op.shape(0), op.shape(1)));
  op.give(op.layer("Exp", {x}, [&](LayerParameter* layer) {
    layer->mutable_exp_param()->set_base(op.value(0).constant->as_floats()[0]);
  }));
}
IMPORT_OPERATOR(Pow, read_pow);

}  // namespace
}  // namespace crema
