// Layers of forks that are short formulas.
#include <cmath>

#include "exchange/onnx/layer_export.h"
#include "proto/params/activation.pb.h"
#include "proto/params/forks_flow.pb.h"
#include "proto/params/forks_segmentation.pb.h"
#include "proto/params/recurrent.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// Groups of entries of an axis, one after the other.
void write_batch_reduction(LayerExport& layer) {
  const BatchReductionParameter& p = layer.message().batch_reduction_param();
  const ReductionParameter& reduction = p.reduction_param();
  const Shape& x = layer.bottom_shape();
  const int axis = x.canonical_axis(reduction.axis()), inner = axis + (p.pos() ? 2 : 1);
  for (int i = axis; i < x.axes(); ++i)
    if (layer.bottom_value().varies(i)) layer.require_fixed_batch("it reduces the batch");
  const int64_t entries = x[axis], positions = p.pos() ? x[axis + 1] : 1;
  std::vector<int64_t> groups = {entries};
  if (p.level_size() > 1 || (p.level_size() == 1 && p.level(0) != 1)) {
    groups.clear();
    for (const int64_t level : p.level()) groups.push_back(level * level);
  }
  std::string all = layer.reshape(layer.bottom(), {-1, entries, positions, x.count(inner)});
  if (p.pos()) {  // entry t counts at position t
    std::vector<float> diagonal(entries * positions);
    for (int64_t t = 0; t < entries; ++t) diagonal[t * positions + t] = 1;
    all = layer.node("Mul", {all, layer.floats({entries, positions, 1}, diagonal)});
  }
  std::vector<std::string> results;
  int64_t first = 0;
  for (const int64_t count : groups) {
    std::string part = groups.size() == 1 ? all : layer.slice(all, 1, first, first + count);
    first += count;
    if (reduction.operation() == ReductionParameter::TOPK) {
      const std::string best = layer.graph().unique(layer.name("best"));
      layer.graph().add("TopK", {part, layer.ints({reduction.k()})},
                        {best, layer.graph().unique(layer.name("places"))}, {{"axis", int64_t{1}}});
      results.push_back(layer.reduce("ReduceMean", best, {1}, true));
      continue;
    }
    part = layer.reduce("ReduceSum", part, {1, 2}, true);
    if (reduction.operation() == ReductionParameter::MEAN)
      part = layer.node("Div", {part, layer.scalar(static_cast<float>(count))});
    results.push_back(part);
  }
  layer.reshape_to_top(results.size() == 1 ? results[0]
                                           : layer.node("Concat", results, {{"axis", int64_t{1}}}));
}
EXPORT_LAYER(BatchReduction, write_batch_reduction);

class DenseBlockExport {
 public:
  explicit DenseBlockExport(LayerExport& layer)
      : layer_(layer), p_(layer.message().denseblock_param()), steps_(p_.numtransition()) {}

  void write() {
    std::string x = layer_.bottom();
    for (int step = 0; step < steps_; ++step) {
      std::string y = x;
      if (p_.use_bc()) y = convolved(normalized(y, step, 0), 5 * steps_ + step, 0);
      y = convolved(normalized(y, step, p_.use_bc() ? 5 * steps_ : 0), step, 1);
      if (step + 1 == steps_) return layer_.write("Concat", {x, y}, {{"axis", int64_t{1}}});
      x = layer_.node("Concat", {x, y}, {{"axis", int64_t{1}}});
    }
  }

 private:
  std::string convolved(const std::string& x, int weights, int64_t pad) {
    return layer_.node("Conv", {x, layer_.parameter(weights)},
                       {{"pads", std::vector<int64_t>(4, pad)}});
  }
  // With a ReLU behind it.
  std::string normalized(const std::string& x, int step, int first) {
    const auto values = [&](int kind) {
      return layer_.parameter_values(first + kind * steps_ + step);
    };
    const float divisor = layer_.parameter_values(layer_.parameters() - 1)[0];
    const double share = divisor == 0 ? 0 : 1.0 / divisor;
    const std::vector<float> scale = values(1), shift = values(2), mean = values(3),
                             variance = values(4);
    std::vector<float> factor, summand;
    for (size_t c = 0; c < scale.size(); ++c) {
      const double slope = scale[c] / std::sqrt(variance[c] * share + 1e-5);
      factor.push_back(static_cast<float>(slope));
      summand.push_back(static_cast<float>(shift[c] - mean[c] * share * slope));
    }
    const auto channels = static_cast<int64_t>(factor.size());
    const std::string product = layer_.node("Mul", {x, layer_.floats({channels, 1, 1}, factor)});
    return layer_.node("Relu",
                       {layer_.node("Add", {product, layer_.floats({channels, 1, 1}, summand)})});
  }

  LayerExport& layer_;
  const DenseBlockParameter& p_;
  const int steps_;
};
void write_dense_block(LayerExport& layer) { DenseBlockExport(layer).write(); }
EXPORT_LAYER(DenseBlock, write_dense_block);

void write_filter(LayerExport& layer) {
  const std::string selector = layer.reshape(layer.bottom(layer.bottoms() - 1), {-1});
  const std::string chosen = layer.reshape(layer.node("NonZero", {selector}), {-1});
  layer.any_extent(0);
  for (int i = 0; i < layer.tops(); ++i) {
    layer.write("Gather", {layer.bottom(i), chosen}, {{"axis", int64_t{0}}}, i);
  }
}
EXPORT_LAYER(Filter, write_filter);

void write_guided_dropout(LayerExport& layer) {
  const GuidedDropoutParameter& p = layer.message().guided_dropout_param();
  layer.refuse_noise_in_training();
  if (p.type() == "stochastic") return layer.write("Identity", {layer.bottom()});
  std::vector<int64_t> extents(layer.bottom_shape().axes(), 1);
  extents[0] = -1;
  extents[1] = layer.bottom_shape()[1];
  const std::string guidance = layer.reshape(layer.bottom(1), extents);
  const std::string kept =
      layer.cast(layer.node("Greater", {guidance, layer.scalar(p.guidance_threshold())}),
                 onnx::TensorProto::FLOAT);
  const std::string count =
      layer.node("Max", {layer.reduce("ReduceSum", kept, {1}, true), layer.scalar(1)});
  const std::string factor =
      layer.node("Div", {layer.scalar(static_cast<float>(extents[1])), count});
  layer.write("Mul", {layer.bottom(), layer.node("Mul", {kept, factor})});
}
EXPORT_LAYER(GuidedDropout, write_guided_dropout);

void write_mean(LayerExport& layer) {
  const MeanParameter& p = layer.message().mean_param();
  if (p.has_file()) layer.refuse("the mean image of a file is not exported", "write `value`");
  const float sign = p.operation() == MeanParameter::SUBTRACT ? -1.f : 1.f;
  for (int i = 0; i < layer.tops(); ++i) {
    const Shape& x = layer.bottom_shape(i);
    std::vector<float> shifts;
    for (int64_t c = 0; c < x[1]; ++c)
      shifts.push_back(sign * p.output_scale() * p.mean_scale() *
                       p.value(static_cast<int>(c % p.value_size())));
    std::vector<int64_t> extents(x.axes() - 1, 1);
    extents[0] = x[1];
    const std::string scaled =
        layer.node("Mul", {layer.bottom(i), layer.scalar(p.output_scale() * p.input_scale())});
    layer.write("Add", {scaled, layer.floats(extents, shifts)}, {}, i);
  }
}
EXPORT_LAYER(Mean, write_mean);

void write_data_augmentation(LayerExport& layer) {
  const AugmentationParameter& p = layer.message().augmentation_param();
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  std::string image = layer.bottom();
  for (const int axis : {2, 3}) {
    const int64_t first = (x[axis] - y[axis]) / 2;
    if (x[axis] != y[axis]) image = layer.slice(image, axis, first, first + y[axis]);
  }
  if (p.recompute_mean() > 0) return layer.write("Sub", {image, layer.parameter(0)});
  if (p.mean_size() == 0) return layer.write("Identity", {image});
  layer.write("Sub", {image, layer.floats({x[1], 1, 1}, {p.mean().begin(), p.mean().end()})});
}
EXPORT_LAYER(DataAugmentation, write_data_augmentation);

// The best class of each step, (steps, sequences). Without repeats and blanks the others move to the
// front: TopK sorts the steps, those that are dropped behind the rest.
void write_ctc_decoder(LayerExport& layer) {
  const CTCDecoderParameter& p = layer.message().ctc_decoder_param();
  const Shape& x = layer.bottom_shape();
  const bool indicated = layer.bottoms() > 1;
  if (indicated && layer.top_shape()[0] == 1 && layer.top_shape()[1] == 2 &&
      !(x[1] == 1 && x[0] == 2)) {
    layer.refuse("it counts errors", "leave out its labels: it then gives what it reads");
  }
  const int64_t steps = x[0], classes = x.count(2);
  int64_t blank = indicated ? classes - 1 : 0;
  if (p.has_blank_index()) blank = p.blank_index() + (p.blank_index() < 0 ? classes : 0);
  const std::string scores = layer.reshape(layer.bottom(), {steps, -1, classes});
  const std::string labels =
      layer.node("ArgMax", {scores}, {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}});
  std::string drop = layer.node("Equal", {labels, layer.index(blank)});
  if (p.ctc_merge_repeated() && steps > 1) {
    const std::string same = layer.node(
        "Equal", {layer.slice(labels, 0, 1, steps), layer.slice(labels, 0, 0, steps - 1)});
    const std::string repeats =
        layer.node("Pad", {layer.cast(same, onnx::TensorProto::FLOAT), layer.ints({1, 0, 0, 0})});
    drop = layer.node("Or", {drop, layer.cast(repeats, onnx::TensorProto::BOOL)});
  }
  if (indicated && steps > 1) {  // a 0 from step 1 on ends the sequence
    const std::string begins =
        layer.node("Equal", {layer.reshape(layer.bottom(1), {steps, -1}), layer.scalar(0)});
    const std::string later =
        layer.node("Pad", {layer.slice(layer.cast(begins, onnx::TensorProto::FLOAT), 0, 1, steps),
                           layer.ints({1, 0, 0, 0})});
    const std::string ended = layer.node("CumSum", {later, layer.index(0)});
    drop = layer.node("Or", {drop, layer.node("Greater", {ended, layer.scalar(0)})});
  }
  std::vector<float> numbers;
  for (int64_t t = 0; t < steps; ++t) numbers.push_back(static_cast<float>(t));
  const std::string order =
      layer.node("Add", {layer.node("Mul", {layer.cast(drop, onnx::TensorProto::FLOAT),
                                            layer.scalar(static_cast<float>(steps))}),
                         layer.floats({steps, 1}, numbers)});
  const std::string sorted = layer.graph().unique(layer.name("sorted"));
  const std::string places = layer.graph().unique(layer.name("places"));
  layer.graph().add("TopK", {order, layer.ints({steps})}, {sorted, places},
                    {{"axis", int64_t{0}}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}});
  const std::string moved =
      layer.node("GatherElements", {layer.cast(labels, onnx::TensorProto::FLOAT), places},
                 {{"axis", int64_t{0}}});
  const std::string kept =
      layer.node("Less", {sorted, layer.scalar(static_cast<float>(steps) - 0.5f)});
  const std::string read = layer.node("Where", {kept, moved, layer.scalar(-1)});
  layer.reshape_to_top(layer.node("Transpose", {read}, {{"perm", std::vector<int64_t>{1, 0}}}));
}
EXPORT_LAYER(CTCGreedyDecoder, write_ctc_decoder);

}  // namespace
}  // namespace crema
