// Softmax and layers that reduce axes.
#include <numeric>

#include "exchange/onnx/layer_export.h"
#include "proto/params/activation.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// Before opset 13 Softmax joins the axes behind its own.
void write_softmax(LayerExport& layer) {
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(layer.message().softmax_param().axis());
  const int last = x.axes() - 1;
  if (layer.opset() >= 13 || axis == last)
    return layer.write("Softmax", {layer.bottom()}, {{"axis", int64_t{axis}}});
  std::vector<int64_t> order(x.axes());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[last]);
  const std::string turned = layer.node("Transpose", {layer.bottom()}, {{"perm", order}});
  const std::string y = layer.node("Softmax", {turned}, {{"axis", int64_t{last}}});
  layer.write("Transpose", {y}, {{"perm", order}});
}
EXPORT_LAYER(Softmax, write_softmax);

struct Largest {
  std::string values, indices;  // the indices as floats
};

// Of equal values Caffe takes the later one; TopK the earlier one, so it runs over the mirror image.
Largest largest_along(LayerExport& layer, const std::string& x, int axis, int64_t extent,
                      int64_t count) {
  const std::string mirror =
      layer.node("Slice", {x, layer.ints({-1}), layer.ints({std::numeric_limits<int64_t>::min()}),
                           layer.ints({axis}), layer.ints({-1})});
  const std::string values = layer.graph().unique(layer.name("largest"));
  const std::string places = layer.graph().unique(layer.name("places"));
  layer.graph().add("TopK", {mirror, layer.ints({count})}, {values, places},
                    {{"axis", int64_t{axis}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  const std::string last = layer.scalar(static_cast<float>(extent - 1));
  return {values, layer.node("Sub", {last, layer.cast(places, onnx::TensorProto::FLOAT)})};
}

void write_argmax(LayerExport& layer) {
  const ArgMaxParameter& p = layer.message().argmax_param();
  const Shape& x = layer.bottom_shape();
  if (p.has_axis()) {
    const int axis = x.canonical_axis(p.axis());
    const Largest found = largest_along(layer, layer.bottom(), axis, x[axis], p.top_k());
    return layer.write("Identity", {p.out_max_val() ? found.values : found.indices});
  }
  const std::string rows = layer.node("Flatten", {layer.bottom()}, {{"axis", int64_t{1}}});
  const Largest found = largest_along(layer, rows, 1, x.count(1), p.top_k());
  if (!p.out_max_val()) return layer.reshape_to_top(found.indices);
  const std::string both =
      layer.node("Concat", {found.indices, found.values}, {{"axis", int64_t{1}}});
  layer.reshape_to_top(both);
}
EXPORT_LAYER(ArgMax, write_argmax);

void write_reduction(LayerExport& layer) {
  const ReductionParameter& p = layer.message().reduction_param();
  const Shape& x = layer.bottom_shape();
  const int axis = x.axes() == 0 ? 0 : x.canonical_axis(p.axis());
  std::vector<int64_t> axes(x.axes() - axis);
  std::iota(axes.begin(), axes.end(), axis);
  std::string y;
  switch (p.operation()) {
    case ReductionParameter::SUM:
      y = layer.reduce("ReduceSum", layer.bottom(), axes, false);
      break;
    case ReductionParameter::ASUM:
      y = layer.reduce("ReduceL1", layer.bottom(), axes, false);
      break;
    case ReductionParameter::SUMSQ:
      y = layer.reduce("ReduceSumSquare", layer.bottom(), axes, false);
      break;
    case ReductionParameter::MEAN:
      y = layer.reduce("ReduceMean", layer.bottom(), axes, false);
      break;
    case ReductionParameter::TOPK: {
      std::vector<int64_t> rows = layer.extents_of(layer.top_value());
      rows.push_back(x.count(axis));
      const std::string flat = layer.reshape(layer.bottom(), rows);
      const Largest found = largest_along(layer, flat, axis, x.count(axis), p.k());
      y = layer.reduce("ReduceMean", found.values, {axis}, false);
      break;
    }
  }
  if (p.coeff() == 1) return layer.write("Identity", {y});
  layer.write("Mul", {y, layer.scalar(p.coeff())});
}
EXPORT_LAYER(Reduction, write_reduction);

}  // namespace
}  // namespace crema
