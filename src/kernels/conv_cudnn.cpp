// Convolution by cuDNN's graph API: float32 on the GPU, one to three spatial axes (one is seen as
// two). Exact: engines that round to TF32 or that add in another order on each run are left out.
#define CUDNN_FRONTEND_SKIP_JSON_LIB  // graphs are not written to files
#include <cudnn_frontend.h>

#include <algorithm>
#include <unordered_map>

#include "device/gpu.h"
#include "kernels/add.h"
#include "kernels/bias.h"
#include "kernels/conv_bodies.h"

namespace crema {
namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::NumericalNote_t;
using Integers = std::vector<int64_t>;

// Names of the three tensors within a graph.
enum Tag : int64_t { kX = 1, kW = 2, kY = 3 };

// The numbers of a case with at least two spatial axes.
struct Numbers {
  Integers x, w, y, stride, pad, dilation;
  bool channels_last;

  explicit Numbers(const ConvCase& c)
      : x(c.x.dims()),
        w(c.w.dims()),
        y(c.y.dims()),
        stride(c.stride),
        pad(c.pad),
        dilation(c.dilation),
        channels_last(c.order == Order::channels_last) {
    if (c.x.axes() > 3) return;
    for (Integers* dims : {&x, &w, &y}) dims->insert(dims->begin() + 2, 1);
    stride.insert(stride.begin(), 1);
    pad.insert(pad.begin(), 0);
    dilation.insert(dilation.begin(), 1);
  }

  Integers strides(const Integers& dims) const {
    Integers strides(dims.size(), 1);
    int64_t step = channels_last ? dims[1] : 1;
    for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis) {
      if (channels_last && axis == 1) continue;
      strides[axis] = step;
      step *= dims[axis];
    }
    return strides;
  }

  std::shared_ptr<graph::Tensor_attributes> tensor(graph::Graph& g, const Integers& dims,
                                                   Tag tag) const {
    return g.tensor(
        graph::Tensor_attributes().set_dim(dims).set_stride(strides(dims)).set_uid(tag));
  }
  void output(const std::shared_ptr<graph::Tensor_attributes>& tensor, const Integers& dims,
              Tag tag) const {
    tensor->set_output(true).set_dim(dims).set_stride(strides(dims)).set_uid(tag);
  }
  template <typename Attributes>
  Attributes attributes() const {
    return Attributes().set_padding(pad).set_stride(stride).set_dilation(dilation);
  }
};

// One graph with one operation and the first plan that cuDNN's heuristics suggest and that can be
// built.
class Operation {
 public:
  Operation() {
    const auto type = cudnn_frontend::DataType_t::FLOAT;
    graph_.set_io_data_type(type).set_intermediate_data_type(type).set_compute_data_type(type);
  }
  graph::Graph& graph() { return graph_; }

  // False with the reason when there is no such plan.
  bool build(Context& context, std::string& reason) {
    const auto good = [&](cudnn_frontend::error_t status) {
      if (status.is_bad()) reason = status.get_message();
      return status.is_good();
    };
    if (!good(graph_.validate()) || !good(graph_.build_operation_graph(context.gpu().cudnn)) ||
        !good(graph_.create_execution_plans(
            {cudnn_frontend::HeurMode_t::A, cudnn_frontend::HeurMode_t::FALLBACK}))) {
      return false;
    }
    graph_.deselect_numeric_notes(
        {NumericalNote_t::TENSOR_CORE, NumericalNote_t::DOWN_CONVERT_INPUTS,
         NumericalNote_t::REDUCED_PRECISION_REDUCTION, NumericalNote_t::NONDETERMINISTIC,
         NumericalNote_t::FFT, NumericalNote_t::WINOGRAD_TILE_6x6,
         NumericalNote_t::WINOGRAD_TILE_13x13});
    if (!good(graph_.check_support()) || !good(graph_.build_plans())) return false;
    int64_t bytes = 0;
    if (!good(graph_.get_workspace_size(bytes))) return false;
    workspace_ = static_cast<size_t>(bytes);
    return true;
  }

  size_t workspace() const { return workspace_; }

  void run(Context& context, void* x, void* w, void* y, void* workspace) {
    std::unordered_map<int64_t, void*> tensors = {{kX, x}, {kW, w}, {kY, y}};
    auto status = graph_.execute(context.gpu().cudnn, tensors, workspace);
    if (status.is_bad()) fail("a convolution by cuDNN failed: ", status.get_message());
  }

 private:
  graph::Graph graph_;
  size_t workspace_ = 0;
};

class CudnnConv final : public Conv {
 public:
  explicit CudnnConv(const ConvCase& c) : c_(c), numbers_(c) {}

  bool prepare(Context& context, std::string& reason) {
    const Numbers& n = numbers_;
    if (c_.forward) {
      graph::Graph& g = forward_.graph();
      n.output(g.conv_fprop(n.tensor(g, n.x, kX), n.tensor(g, n.w, kW),
                            n.attributes<graph::Conv_fprop_attributes>()),
               n.y, kY);
      if (!forward_.build(context, reason)) return false;
    }
    if (c_.backward_data) {
      graph::Graph& g = data_.graph();
      n.output(g.conv_dgrad(n.tensor(g, n.y, kY), n.tensor(g, n.w, kW),
                            n.attributes<graph::Conv_dgrad_attributes>()),
               n.x, kX);
      if (!data_.build(context, reason)) return false;
    }
    if (c_.backward_weights) {
      graph::Graph& g = weights_.graph();
      n.output(g.conv_wgrad(n.tensor(g, n.y, kY), n.tensor(g, n.x, kX),
                            n.attributes<graph::Conv_wgrad_attributes>()),
               n.w, kW);
      if (!weights_.build(context, reason)) return false;
      gradient_bytes_ = aligned(static_cast<size_t>(c_.w.count()) * sizeof(float));
    }
    return true;
  }

  Format weights_format() const override { return {c_.order, nullptr}; }
  size_t workspace() const override {
    return std::max(
        {forward_.workspace(), data_.workspace(), gradient_bytes_ + weights_.workspace()});
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    forward_.run(context, x.raw(), w.raw(), y.raw(), workspace.raw());
    add_bias(context, outer(), c_.y[1], inner(), b ? b.data<float>() : nullptr,
             {c_.relu, c_.relu_slope}, y.data<float>());
  }

  void backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    data_.run(context, dx.raw(), w.raw(), dy.raw(), workspace.raw());
  }

  void backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    const Tensor goal = accumulate_w ? part_of(workspace, 0, c_.w, c_.dtype, weights_format()) : dw;
    weights_.run(context, x.raw(), goal.raw(), dy.raw(), workspace.data<char>() + gradient_bytes_);
    if (accumulate_w) add_to(context, goal, dw);
    if (db)
      bias_gradient(context, outer(), c_.y[1], inner(), dy.data<float>(), db.data<float>(),
                    accumulate_b);
  }

 private:
  // y as outer x channels x inner.
  int64_t outer() const { return numbers_.channels_last ? c_.y[0] * c_.y.count(2) : c_.y[0]; }
  int64_t inner() const { return numbers_.channels_last ? 1 : c_.y.count(2); }

  ConvCase c_;
  Numbers numbers_;
  Operation forward_, data_, weights_;
  size_t gradient_bytes_ = 0;  // of a gradient that is to be added
};

}  // namespace

std::unique_ptr<Conv> make_conv_cudnn(Context& context, const ConvCase& c, std::string& reason) {
  if (context.device() != Device::gpu) {
    reason = "it needs a GPU";
  } else if (c.dtype != DType::f32) {
    reason = cat("no ", name_of(c.dtype));
  } else if (c.x.axes() > 5) {
    reason = cat(c.x.axes() - 2, " spatial axes, at most 3");
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    try {
      auto conv = std::make_unique<CudnnConv>(c);
      if (conv->prepare(context, reason)) return conv;
    } catch (const cudnn_frontend::cudnnException& error) {
      reason = error.what();
    }
  }
  return nullptr;
}

}  // namespace crema
