// Convolution by cuDNN's graph API: one to three spatial axes (one is seen as two), with bias and
// ReLU in the forward plan where cuDNN has one for them. Groups are cuDNN's work or, for the
// implementation "groups", one convolution after the other on a part of the channels, which has
// kernels that those for groups lack.
#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/add.h"
#include "kernels/bias.h"
#include "kernels/conv_bodies.h"
#include "kernels/cudnn_graph.h"
#include "kernels/reorder.h"
#include "tensor/on.h"

namespace crema {
namespace {

namespace graph = cudnn_frontend::graph;
using Integers = std::vector<int64_t>;

// Names of the tensors within a graph.
enum Tag : int64_t {
  kX = 1,
  kW = 2,
  kY = 3,
  kB = 4,
  kSum = 5,
  kSquares = 6,
  kScale = 7,
  kShift = 8
};

// The numbers of a case with at least two spatial axes, or of one of its groups.
struct Numbers {
  Integers x, w, y, stride, pad, dilation;
  int64_t parts = 1;  // groups that are convolutions of their own
  bool channels_last;

  Numbers(const ConvCase& c, bool apart)
      : x(c.x.dims()),
        w(c.w.dims()),
        y(c.y.dims()),
        stride(c.stride),
        pad(c.pad),
        dilation(c.dilation),
        parts(apart ? c.groups : 1),
        channels_last(c.order == Order::channels_last) {
    if (c.x_channels > 0) x[1] = w[1] = c.x_channels;
    for (int64_t* channels : {&x[1], &w[0], &y[1]}) *channels /= parts;
    if (c.x.axes() > 3) return;
    for (Integers* dims : {&x, &w, &y}) dims->insert(dims->begin() + 2, 1);
    stride.insert(stride.begin(), 1);
    pad.insert(pad.begin(), 0);
    dilation.insert(dilation.begin(), 1);
  }

  // Images keep the channels of all groups together.
  Integers strides(const Integers& dims, Tag tag) const {
    const int64_t channels = dims[1] * (tag == kX || tag == kY ? parts : 1);
    Integers strides(dims.size(), 1);
    int64_t step = channels_last ? channels : 1;
    for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis) {
      if (channels_last && axis == 1) continue;
      strides[axis] = step;
      step *= axis == 1 ? channels : dims[axis];
    }
    return strides;
  }
  // From a group's part of a channels-last tensor to the next one's, in elements.
  int64_t step(int64_t tag) const {
    if (tag == kX) return x[1];
    if (tag != kW) return y[1];
    return std::accumulate(w.begin(), w.end(), int64_t{1}, std::multiplies<>());
  }

  CudnnGraph::Attributes input(CudnnGraph& g, const Integers& dims, Tag tag) const {
    return g.input(dims, strides(dims, tag), tag);
  }
  void output(CudnnGraph& g, const CudnnGraph::Attributes& tensor, const Integers& dims,
              Tag tag) const {
    g.output(tensor, dims, strides(dims, tag), tag);
  }
  template <typename Attributes>
  Attributes attributes() const {
    return Attributes().set_padding(pad).set_stride(stride).set_dilation(dilation);
  }
};

class CudnnConv final : public WeightedSum {
 public:
  CudnnConv(const ConvCase& c, bool groups_apart) : c_(c), numbers_(c, groups_apart) {}

  bool prepare(const CudnnTarget& target, std::string& reason) {
    const Numbers& n = numbers_;
    if (c_.forward && !prepare_fused(target) && !prepare_forward(target, reason)) return false;
    if (c_.forward && c_.sums) prepare_summing(target);
    if (c_.backward_data) {
      data_ = std::make_unique<CudnnGraph>(c_.dtype);
      const auto dy = n.input(*data_, n.y, kY), w = n.input(*data_, n.w, kW);
      n.output(*data_,
               data_->graph().conv_dgrad(dy, w, n.attributes<graph::Conv_dgrad_attributes>()), n.x,
               kX);
      if (!data_->build(target, c_.precision, key("data"), reason)) return false;
    }
    if (c_.backward_weights) {
      weights_ = std::make_unique<CudnnGraph>(c_.dtype);
      const auto dy = n.input(*weights_, n.y, kY), x = n.input(*weights_, n.x, kX);
      n.output(*weights_,
               weights_->graph().conv_wgrad(dy, x, n.attributes<graph::Conv_wgrad_attributes>()),
               n.w, kW);
      if (!weights_->build(target, c_.precision, key("weights"), reason)) return false;
      gradient_bytes_ = weights_bytes();
    }
    return true;
  }

  bool fused() const { return fused_; }
  bool gives_sums() const override { return summing_ != nullptr; }
  bool takes_affine() const override { return folding_ != nullptr; }
  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }
  size_t workspace() const override {
    const auto of = [](const std::unique_ptr<CudnnGraph>& g) { return g ? g->workspace() : 0; };
    return std::max(
        {of(forward_), of(summing_), of(folding_), of(data_), gradient_bytes_ + of(weights_)});
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    std::vector<CudnnGraph::Bound> tensors = {{kX, x.raw()}, {kW, w.raw()}, {kY, y.raw()}};
    if (fused_ && c_.bias) tensors.push_back({kB, b.raw()});
    run(context, *forward_, tensors, workspace.raw());
    if (fused_) return;
    on_real(y, [&]<typename T>() {
      add_bias(context, outer(), c_.y[1], inner(), b ? b.data<T>() : nullptr,
               {c_.relu, c_.relu_slope}, y.data<T>());
    });
  }

  void forward_summing(Context& context, const Tensor& x, const Tensor& affine, const Tensor& w,
                       const Tensor& y, const Tensor& sums, const Tensor& workspace) override {
    float* const sum = sums.data<float>();
    std::vector<CudnnGraph::Bound> tensors = {
        {kX, x.raw()}, {kW, w.raw()}, {kY, y.raw()}, {kSum, sum}, {kSquares, sum + c_.y[1]}};
    if (affine) {
      Half* const scale = affine.data<Half>();
      tensors.push_back({kScale, scale});
      tensors.push_back({kShift, scale + c_.x[1]});
    }
    run(context, affine ? *folding_ : *summing_, tensors, workspace.raw());
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    run(context, *data_, {{kX, dx.raw()}, {kW, w.raw()}, {kY, g.dy.raw()}}, workspace.raw());
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    // cuDNN overwrites, and writes 16 bits where it reads them.
    const bool apart = accumulate_w || dw.dtype() != c_.dtype;
    const Tensor goal = apart ? scratch(workspace) : dw;
    run(context, *weights_, {{kX, x.raw()}, {kW, goal.raw()}, {kY, g.dy.raw()}},
        workspace.data<char>() + gradient_bytes_);
    if (accumulate_w) {
      add_to(context, goal, dw);
    } else if (apart) {
      reorder(context, goal, dw);
    }
    if (!db) return;
    on_real(g.dy, [&]<typename T>() {
      bias_gradient(context, outer(), c_.y[1], inner(), g.dy.data<T>(), db.data<Compute<T>>(),
                    accumulate_b);
    });
  }

 private:
  // Weights, or their gradient, at the start of the workspace: as the plans see them.
  Tensor scratch(const Tensor& workspace) const {
    return part_of(workspace, 0, c_.w, c_.dtype, weights_format());
  }
  size_t weights_bytes() const {
    return aligned(static_cast<size_t>(weights_format().elements(c_.w)) * size_of(c_.dtype));
  }
  std::string key(const char* what) const {
    const auto list = [](const Integers& values) {
      std::string text;
      for (int64_t value : values) text += cat(value, ",");
      return text;
    };
    const Numbers& n = numbers_;
    return cat("conv ", what, " ", name_of(c_.precision), " ", name_of(c_.dtype),
               n.channels_last ? " last" : " plain", " x", list(n.x), " w", list(n.w), " y",
               list(n.y), " s", list(n.stride), " p", list(n.pad), " d", list(n.dilation),
               n.parts > 1 ? cat(" one of ", n.parts) : "");
  }

  void run(Context& context, CudnnGraph& graph, std::vector<CudnnGraph::Bound> tensors,
           void* workspace) const {
    for (int64_t part = 0; part < numbers_.parts; ++part) {
      graph.run(context, tensors, workspace);
      for (CudnnGraph::Bound& bound : tensors) {
        bound.memory = static_cast<char*>(bound.memory) +
                       numbers_.step(bound.uid) * static_cast<int64_t>(size_of(c_.dtype));
      }
    }
  }

  bool prepare_forward(const CudnnTarget& target, std::string& reason) {
    const Numbers& n = numbers_;
    forward_ = std::make_unique<CudnnGraph>(c_.dtype);
    const auto x = n.input(*forward_, n.x, kX), w = n.input(*forward_, n.w, kW);
    n.output(*forward_,
             forward_->graph().conv_fprop(x, w, n.attributes<graph::Conv_fprop_attributes>()), n.y,
             kY);
    return forward_->build(target, c_.precision, key("forward"), reason);
  }

  // With bias and ReLU in one plan. Exact float32 has none that is worth it.
  bool prepare_fused(const CudnnTarget& target) {
    if (c_.precision == Precision::fp32 || !c_.bias || (c_.relu && c_.relu_slope != 0))
      return false;
    const Numbers& n = numbers_;
    forward_ = std::make_unique<CudnnGraph>(c_.dtype);
    graph::Graph& g = forward_->graph();
    const auto x = n.input(*forward_, n.x, kX), w = n.input(*forward_, n.w, kW);
    Integers one(n.y.size(), 1);
    one[1] = n.y[1];
    const auto b = n.input(*forward_, one, kB);
    const auto pointwise = [](cudnn_frontend::PointwiseMode_t mode) {
      return graph::Pointwise_attributes().set_mode(mode);
    };
    auto y = g.conv_fprop(x, w, n.attributes<graph::Conv_fprop_attributes>());
    y = g.pointwise(y, b, pointwise(cudnn_frontend::PointwiseMode_t::ADD));
    if (c_.relu) y = g.pointwise(y, pointwise(cudnn_frontend::PointwiseMode_t::RELU_FWD));
    n.output(*forward_, y, n.y, kY);
    std::string reason;
    fused_ = forward_->build(target, c_.precision, key(c_.relu ? "bias relu" : "bias"), reason);
    return fused_;
  }

  // With the sums of each channel and of their squares, and also with a batch normalization's
  // scale, shift and ReLU before. float16 only, says cuDNN.
  void prepare_summing(const CudnnTarget& target) {
    if (c_.dtype != DType::f16 || !numbers_.channels_last || numbers_.parts > 1 || c_.bias ||
        c_.relu)
      return;
    Context* const context = target.context();
    summing_ = make_summing(target, false);
    if (summing_ && context && !pays(*context, "sums pay", *summing_, [&](const auto& memory) {
          forward_->run(*context, memory.tensors, memory.workspace);
          bias_gradient(*context, outer(), c_.y[1], inner(), memory.template at<Half>(kY),
                        memory.template at<float>(kSum), false);
        }))
      summing_ = nullptr;
    if (!summing_ || !c_.affine) return;
    folding_ = make_summing(target, true);
    if (folding_ && context && !pays(*context, "affine pays", *folding_, [&](const auto& memory) {
          summing_->run(*context, memory.tensors, memory.workspace);
          Half* const x = memory.template at<Half>(kX);
          add_bias(*context, c_.x.count() / c_.x[1], c_.x[1], 1, memory.template at<Half>(kShift),
                   {true, 0}, x);
        }))
      folding_ = nullptr;
  }

  std::unique_ptr<CudnnGraph> make_summing(const CudnnTarget& target, bool affine) const {
    const Numbers& n = numbers_;
    auto summing = std::make_unique<CudnnGraph>(c_.dtype);
    graph::Graph& g = summing->graph();
    auto x = n.input(*summing, n.x, kX);
    const auto w = n.input(*summing, n.w, kW);
    if (affine) {
      Integers one(n.x.size(), 1);
      one[1] = n.x[1];
      const auto pointwise = [](cudnn_frontend::PointwiseMode_t mode) {
        return graph::Pointwise_attributes().set_mode(mode);
      };
      x = g.pointwise(x, n.input(*summing, one, kScale),
                      pointwise(cudnn_frontend::PointwiseMode_t::MUL));
      x = g.pointwise(x, n.input(*summing, one, kShift),
                      pointwise(cudnn_frontend::PointwiseMode_t::ADD));
      x = g.pointwise(x, pointwise(cudnn_frontend::PointwiseMode_t::RELU_FWD));
    }
    const auto y = g.conv_fprop(x, w, n.attributes<graph::Conv_fprop_attributes>());
    n.output(*summing, y, n.y, kY);
    const auto sums = g.genstats(y, graph::Genstats_attributes());
    summing->output_sums(sums[0], n.y[1], kSum);
    summing->output_sums(sums[1], n.y[1], kSquares);
    std::string reason;
    if (!summing->build(target, c_.precision, key(affine ? "affine sums" : "sums"), reason))
      return nullptr;
    return summing;
  }

  // Whether `fused` takes less time than what runs without it.
  template <typename Without>
  bool pays(Context& context, const char* what, CudnnGraph& fused, const Without& without) const {
    Tuning& tuning = context.gpu().tuning;
    const std::string name = key(what);
    if (const std::optional<std::string> known = tuning.find(name)) return *known == "yes";
    const std::optional<CudnnGraph::Scratch> memory = fused.scratch(context);
    if (tuning.candidates() <= 1 || !memory || workspace() > CudnnGraph::kWorkspaceLimit)
      return true;
    const double apart = tuning.time_repeated(context, [&] { without(*memory); });
    const double together = tuning.time_repeated(
        context, [&] { fused.run(context, memory->tensors, memory->workspace); });
    tuning.remember(name, together < apart ? "yes" : "no");
    return together < apart;
  }

  // y as outer x channels x inner.
  int64_t outer() const { return numbers_.channels_last ? c_.y[0] * c_.y.count(2) : c_.y[0]; }
  int64_t inner() const { return numbers_.channels_last ? 1 : c_.y.count(2); }

  ConvCase c_;
  Numbers numbers_;
  std::unique_ptr<CudnnGraph> forward_, summing_, folding_, data_, weights_;
  bool fused_ = false;         // the forward plan adds the bias and has the ReLU
  size_t gradient_bytes_ = 0;  // of a weight gradient that is then added or widened
};

}  // namespace

CudnnSupport conv_cudnn_support(const ConvCase& c, const std::string& card, bool groups_apart) {
  CudnnSupport support;
  CudnnConv conv(c, groups_apart);
  support.served = conv.prepare(CudnnTarget(card), support.reason);
  support.fused = conv.fused();
  support.sums = conv.gives_sums();
  support.affine = conv.takes_affine();
  return support;
}

namespace {

std::unique_ptr<WeightedSum> make(Context& context, const ConvCase& c, bool groups_apart,
                                  std::string& reason) {
  if (context.device() != Device::gpu) {
    reason = "it needs a GPU";
  } else if (c.dtype == DType::f64) {
    reason = cat("no ", name_of(c.dtype));
  } else if (c.x.axes() > 5) {
    reason = cat(c.x.axes() - 2, " spatial axes, at most 3");
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    try {
      auto conv = std::make_unique<CudnnConv>(c, groups_apart);
      if (conv->prepare(context, reason)) return conv;
    } catch (const cudnn_frontend::cudnnException& error) {
      reason = error.what();
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<WeightedSum> make_conv_cudnn(Context& context, const ConvCase& c,
                                             std::string& reason) {
  return make(context, c, false, reason);
}

std::unique_ptr<WeightedSum> make_conv_groups(Context& context, const ConvCase& c,
                                              std::string& reason) {
  constexpr int64_t kMostGroups = 8, kVector = 8;
  if (!is_half(c.dtype) || c.order != Order::channels_last) {
    reason = "for channels-last images of 16-bit numbers only";
  } else if (c.groups == 1 || c.groups > kMostGroups) {
    reason = cat(c.groups, " groups, not 2 to ", kMostGroups);
  } else if (c.w[1] % kVector != 0 || c.w[0] / c.groups % kVector != 0) {
    reason = cat("the channels of a group are no multiples of ", kVector);
  } else {
    return make(context, c, true, reason);
  }
  return nullptr;
}

}  // namespace crema
