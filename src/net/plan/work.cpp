#include "net/plan/work.h"

#include <algorithm>
#include <set>

#include "kernels/conv/winograd.h"
#include "layers/vision/convolution_base.h"
#include "layers/vision/pooling_window.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// Adds up the bytes of a step. A tensor that it reads through two arguments counts once.
class Traffic {
 public:
  void read(const Tensor& tensor, double share = 1) { add(read_, tensor, share); }
  void write(const Tensor& tensor) { add(written_, tensor, 1); }
  void read(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) read(tensor);
  }
  void write(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) write(tensor);
  }
  double bytes() const { return bytes_; }

 private:
  void add(std::set<const void*>& seen, const Tensor& tensor, double share) {
    if (tensor && seen.insert(tensor.raw()).second)
      bytes_ += share * static_cast<double>(tensor.bytes());
  }

  std::set<const void*> read_, written_;
  double bytes_ = 0;
};

double multiply_adds(const Layer& layer, const Preparation& preparation) {
  return static_cast<double>(layer.multiply_adds(preparation.bottoms, preparation.tops));
}

double ratio(const Shape& part, const Shape& whole) {
  return whole.count() == 0
             ? 1
             : std::min(1., static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

// The share of the positions along all axes that windows with gaps between them cover. Windows
// without gaps cover all. In row-major order a gap along the last axis saves nothing: memory is read
// in pieces of several elements.
double covered(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
               const std::vector<int64_t>& dilation, const Shape& x, const Shape& y, Order order) {
  const size_t axes = kernel.size();
  double share = 1;
  for (size_t axis = 0; axis < axes; ++axis) {
    const bool last = axis + 1 == axes;
    const int64_t reach = (kernel[axis] - 1) * dilation[axis] + 1;
    if (stride[axis] <= reach || (last && order == Order::row_major)) continue;
    const int at = x.axes() - static_cast<int>(axes - axis);
    share *= std::min(1., static_cast<double>(y[at] * kernel[axis]) / static_cast<double>(x[at]));
  }
  return share;
}

bool is_pooling(const Layer& layer) {
  static const std::set<std::string> types = {"Pooling", "Pooling3D", "NdPooling", "PoolingND"};
  return types.count(layer.type()) > 0;
}

// The share of bottom 0 that the layer reads.
double share_of_first(const Layer& layer, const Preparation& p) {
  if (p.bottoms.empty() || p.tops.empty()) return 1;
  if (layer.type() == "Crop") return ratio(p.tops[0], p.bottoms[0]);
  if (const auto* const convolution = dynamic_cast<const ConvolutionBase*>(&layer)) {
    const ConvCase c = convolution->case_of(p);
    const bool transposed = starts_with(layer.type(), "Deconvolution");
    const std::vector<int64_t> kernel(c.w.dims().begin() + 2, c.w.dims().end());
    return transposed ? 1 : covered(kernel, c.stride, c.dilation, c.x, c.y, c.order);
  }
  if (is_pooling(layer)) {
    const PoolNd window = pool_axes(layer, p.bottoms[0]);
    return covered(window.kernel, window.stride, window.dilation, p.bottoms[0], p.tops[0],
                   p.bottom_orders[0]);
  }
  return 1;
}

// A table of which only some rows are read.
double share_of_parameters(const Layer& layer, const Preparation& p) {
  return layer.type() == "Embed" ? ratio(p.tops[0], layer.parameters()[0].shape) : 1;
}

void read_parameters(const Layer& layer, const Preparation& p, const std::vector<Tensor>& tensors,
                     Traffic& traffic) {
  for (size_t k = 0; k < tensors.size(); ++k)
    traffic.read(tensors[k], k == 0 ? share_of_parameters(layer, p) : 1);
}

// Only the gradient of the weights is computed from the bottom.
bool bottom_is_for_weights(const Layer& layer) {
  return dynamic_cast<const ConvolutionBase*>(&layer) || layer.type() == "InnerProduct";
}

void add_forward(const Layer& layer, const Preparation& p, const Forward& f, Traffic& traffic) {
  for (size_t j = 0; j < f.bottom.size(); ++j) {
    const bool sums_exist = f.top_edge.affine && f.bottom_edge(j).statistics;
    if (layer.reads_values(static_cast<int>(j)) && !sums_exist)
      traffic.read(f.bottom[j], j == 0 ? share_of_first(layer, p) : 1);
    traffic.read(f.bottom_edge(j).statistics);
    traffic.read(f.bottom_edge(j).affine);
    traffic.read(f.bottom_edge(j).rounded);
  }
  read_parameters(layer, p, f.parameters, traffic);
  traffic.write(f.top);  // without a top that is passed on as scale and shift
  traffic.write(f.top_edge.statistics);
  traffic.write(f.top_edge.affine);
  traffic.write(f.top_edge.rounded);
  traffic.write(f.saved);
}

bool any(const std::vector<Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return static_cast<bool>(tensor); });
}

void add_backward(const Layer& layer, const Preparation& p, const Backward& b, Traffic& traffic) {
  const bool weights = !b.parameter_diff.empty() && b.parameter_diff[0];
  for (size_t j = 0; j < b.bottom.size(); ++j) {
    if (j == 0 && !weights && bottom_is_for_weights(layer)) continue;
    traffic.read(b.bottom[j], j == 0 ? share_of_first(layer, p) : 1);
  }
  traffic.read(b.bottom_edge.affine);
  traffic.read(b.top);
  traffic.read(b.top_diff);
  traffic.read(b.top_edge.gradient_parts);
  traffic.read(b.saved);
  if (any(b.bottom_diff)) read_parameters(layer, p, b.parameters, traffic);
  traffic.write(b.bottom_diff);
  for (size_t k = 0; k < b.parameter_diff.size(); ++k) {
    if (k < b.accumulate.size() && b.accumulate[k]) traffic.read(b.parameter_diff[k]);
    traffic.write(b.parameter_diff[k]);
  }
}

}  // namespace

Work forward_work(const Layer& layer, const Preparation& preparation, const Forward& f) {
  if (layer.traits().is_view || layer.traits().keeps_tops) return {};
  Traffic traffic;
  add_forward(layer, preparation, f, traffic);
  const double operations = 2 * multiply_adds(layer, preparation);
  return {operations, traffic.bytes(), operations};
}

Work backward_work(const Layer& layer, const Preparation& preparation, const Backward& b) {
  if (layer.traits().is_view) return {};
  const bool data = any(b.bottom_diff);
  const bool weights = !b.parameter_diff.empty() && b.parameter_diff[0];
  Traffic traffic;
  add_backward(layer, preparation, b, traffic);
  const double operations = 2 * multiply_adds(layer, preparation) * (data + weights);
  return {operations, traffic.bytes(), operations};
}

Work forward_work(const PlanNode& node) {
  if (node.shapes.idle) return {};
  const std::vector<Forward>& parts = node.arguments.micro_batches;
  Work work = forward_work(*node.layer, node.preparation,
                           parts.empty() ? node.arguments.forward : parts[0]);
  const double count = parts.empty() ? 1 : static_cast<double>(parts.size());
  work.operations *= count;
  work.bytes *= count;
  work.executed *= count;
  if (std::count(node.chosen.begin(), node.chosen.end(), "winograd") > 0) {
    using winograd::kOutput, winograd::kPoints;
    work.executed *= static_cast<double>(kPoints) / (kOutput * kOutput * 3 * 3);
  }
  // VNNI multiplies four bytes in the time of one float.
  if (std::count(node.chosen.begin(), node.chosen.end(), "onednn_int8") > 0) work.executed /= 4;
  return work;
}

Work backward_work(const PlanNode& node) {
  if (node.shapes.idle) return {};
  Work work = backward_work(*node.layer, node.preparation, node.arguments.backward);
  for (const Recomputation& recomputed : node.recomputations) {
    Traffic traffic;
    traffic.read(recomputed.arguments.bottom);
    traffic.read(recomputed.arguments.saved);
    traffic.read(recomputed.arguments.parameters);
    traffic.write(recomputed.arguments.top);
    work.bytes += traffic.bytes();
  }
  for (const DiffSum& sum : node.diff_sums) {
    Traffic traffic;
    traffic.read(sum.parts);
    traffic.write(sum.sum);
    work.bytes += traffic.bytes();
  }
  return work;
}

}  // namespace crema
