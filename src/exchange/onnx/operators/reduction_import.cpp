// Reductions of axes, and positions of the largest values.
#include <algorithm>
#include <numeric>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/shapes.h"
#include "proto/params/pooling.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

std::string global_pool(OperatorImport& op, const std::string& x, bool average) {
  return op.layer("Pooling", {x}, [&](LayerParameter* layer) {
    PoolingParameter* const p = layer->mutable_pooling_param();
    p->set_pool(average ? PoolingParameter::AVE : PoolingParameter::MAX);
    p->set_global_pooling(true);
  });
}

struct ReducedShape {
  std::vector<int64_t> order;   // axes that stay, then those that are reduced
  std::vector<int64_t> result;  // with keepdims or not
  int stay = 0;
};

ReducedShape reduced_shape(const Shape& x, const std::vector<int>& axes, bool keeps) {
  ReducedShape reduced;
  const auto gone = [&](int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (int axis = 0; axis < x.axes(); ++axis) {
    if (!gone(axis)) reduced.order.push_back(axis);
    if (!gone(axis) || keeps) reduced.result.push_back(gone(axis) ? 1 : x[axis]);
  }
  reduced.stay = static_cast<int>(reduced.order.size());
  reduced.order.insert(reduced.order.end(), axes.begin(), axes.end());
  return reduced;
}

std::string reduced_by(OperatorImport& op, const std::string& x, int axis,
                       ReductionParameter::ReductionOp operation) {
  return op.layer("Reduction", {x}, [&](LayerParameter* layer) {
    ReductionParameter* const p = layer->mutable_reduction_param();
    if (operation != ReductionParameter::SUM) p->set_operation(operation);
    if (axis != 0) p->set_axis(axis);
  });
}

// Reduces the axes behind the first `stay`.
std::string reduced_tail(OperatorImport& op, const std::string& x, int stay) {
  const std::string& type = op.type();
  if (type == "ReduceSum") return reduced_by(op, x, stay, ReductionParameter::SUM);
  if (type == "ReduceMean") return reduced_by(op, x, stay, ReductionParameter::MEAN);
  if (type == "ReduceL1") return reduced_by(op, x, stay, ReductionParameter::ASUM);
  if (type == "ReduceSumSquare") return reduced_by(op, x, stay, ReductionParameter::SUMSQ);
  if (type == "ReduceL2")
    return op.power(reduced_by(op, x, stay, ReductionParameter::SUMSQ), 0.5f, 1, 0);
  if (type == "ReduceLogSum")
    return op.layer("Log", {reduced_by(op, x, stay, ReductionParameter::SUM)});
  if (type == "ReduceLogSumExp") {
    const std::string sum = reduced_by(op, op.layer("Exp", {x}), stay, ReductionParameter::SUM);
    return op.layer("Log", {sum});
  }
  const bool largest = type == "ReduceMax";
  const Shape shape = op.blob_shape(x);
  const std::string rows =
      op.reshape(largest ? x : op.power(x, 1, -1, 0), {shape.count(0, stay), 1, shape.count(stay)});
  const std::string y = global_pool(op, rows, false);
  return largest ? y : op.power(y, 1, -1, 0);
}

void read_reduction(OperatorImport& op) {
  const std::vector<int> axes = reduced_axes(op);
  const std::string x = op.blob(0);
  const Shape shape = op.blob_shape(x);
  const bool keeps = op.int_of("keepdims", 1) != 0;
  if (axes.empty()) return op.pass_on();
  const ReducedShape reduced = reduced_shape(shape, axes, keeps);
  const bool spatial = reduced.stay == 2 && axes.front() == 2 && shape.axes() > 2;
  const bool mean = op.type() == "ReduceMean";
  if (spatial && (mean || op.type() == "ReduceMax"))
    return op.give(op.reshape(global_pool(op, x, mean), reduced.result));
  const std::string y = reduced_tail(op, op.permute(x, reduced.order), reduced.stay);
  op.give(op.reshape(y, reduced.result));
}
IMPORT_OPERATOR(ReduceSum, read_reduction);
IMPORT_OPERATOR(ReduceMean, read_reduction);
IMPORT_OPERATOR(ReduceL1, read_reduction);
IMPORT_OPERATOR(ReduceL2, read_reduction);
IMPORT_OPERATOR(ReduceSumSquare, read_reduction);
IMPORT_OPERATOR(ReduceLogSum, read_reduction);
IMPORT_OPERATOR(ReduceLogSumExp, read_reduction);
IMPORT_OPERATOR(ReduceMax, read_reduction);
IMPORT_OPERATOR(ReduceMin, read_reduction);

std::string positions_of_largest(OperatorImport& op, const std::string& x, int axis, int64_t count,
                                 bool values) {
  return op.layer("ArgMax", {x}, [&](LayerParameter* layer) {
    ArgMaxParameter* const p = layer->mutable_argmax_param();
    p->set_axis(axis);
    if (count != 1) p->set_top_k(static_cast<uint32_t>(count));
    if (values) p->set_out_max_val(true);
  });
}

// Of equal values the layer takes the last one, ONNX the first one unless it says otherwise.
void read_argmax(OperatorImport& op) {
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), op.axes());
  std::string x = op.blob(0);
  if (op.type() == "ArgMin") x = op.power(x, 1, -1, 0);
  const Shape shape = op.blob_shape(x);
  if (op.int_of("select_last_index", 0) == 0)
    op.graph().notes.insert(
        "ArgMax: of equal values the layer takes the last one, the model the first one");
  const std::string y = positions_of_largest(op, x, axis, 1, false);
  const std::vector<int> axes = {axis};
  op.give_integers(op.reshape(y, reduced_shape(shape, axes, op.int_of("keepdims", 1) != 0).result));
}
IMPORT_OPERATOR(ArgMax, read_argmax);
IMPORT_OPERATOR(ArgMin, read_argmax);

void read_top_k(OperatorImport& op) {
  const int axis = OperatorImport::axis_in(op.int_of("axis", -1), op.axes());
  const int64_t count = op.opset() < 10 ? op.int_of("k", 0) : truncated(op.number(1, "k"));
  require(count > 0 && count <= op.shape()[axis], "k ", count, " is not within ", op.shape()[axis]);
  const bool largest = op.int_of("largest", 1) != 0;
  const std::string x = largest ? op.blob(0) : op.power(op.blob(0), 1, -1, 0);
  if (op.wanted(1)) op.give_integers(positions_of_largest(op, x, axis, count, false), 1);
  if (!op.wanted(0)) return;
  const std::string values = positions_of_largest(op, x, axis, count, true);
  op.give(largest ? values : op.power(values, 1, -1, 0));
}
IMPORT_OPERATOR(TopK, read_top_k);

}  // namespace
}  // namespace crema
