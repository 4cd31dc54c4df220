#include "kernels/conv/conv_cudnn_norm.h"
#include "kernels/pointwise/bias.h"

namespace crema {
namespace {

namespace graph = cudnn_frontend::graph;
using Scratch = CudnnGraph::Scratch;
using enum ConvParams::Tag;

class Maker {
 public:
  Maker(const CudnnTarget& target, const ConvCase& c, const ConvParams& n)
      : target_(target), c_(c), n_(n) {}

  std::unique_ptr<CudnnGraph> fprop(bool affine) const {
    auto plan = std::make_unique<CudnnGraph>(c_.dtype);
    const auto x = input(*plan, affine);
    const auto y = plan->graph().conv_fprop(x, n_.input(*plan, n_.w, kW),
                                            n_.attributes<graph::Conv_fprop_attributes>());
    n_.output(*plan, y, n_.y, kY);
    const auto sums = plan->graph().genstats(y, graph::Genstats_attributes());
    plan->output_sums(sums[0], n_.y[1], kSum);
    plan->output_sums(sums[1], n_.y[1], kSquares);
    plan->start(target_, c_.precision, n_.key(c_, affine ? "affine sums" : "sums"));
    return plan;
  }

  std::unique_ptr<CudnnGraph> wgrad() const {
    auto plan = std::make_unique<CudnnGraph>(c_.dtype);
    const auto x = input(*plan, true);
    n_.output(*plan,
              plan->graph().conv_wgrad(n_.input(*plan, n_.y, kY), x,
                                       n_.attributes<graph::Conv_wgrad_attributes>()),
              n_.w, kW);
    plan->start(target_, c_.precision, n_.key(c_, "affine weights"));
    return plan;
  }

  // Builds the plan. Null unless it is faster than `without`, which is called with its tensors.
  template <typename Without>
  std::unique_ptr<CudnnGraph> kept(std::unique_ptr<CudnnGraph> plan, const char* what,
                                   const Without& without) const {
    std::string reason;
    if (!plan->build(reason)) return nullptr;
    if (!target_.context() || pays(*target_.context(), *plan, what, without)) return plan;
    return nullptr;
  }

 private:
  CudnnGraph::Attributes input(CudnnGraph& plan, bool affine) const {
    auto x = n_.input(plan, n_.x, kX);
    if (!affine) return x;
    ConvParams::Integers one(n_.x.size(), 1);
    one[1] = n_.x[1];
    graph::Graph& g = plan.graph();
    const auto pointwise = [](cudnn_frontend::PointwiseMode_t mode) {
      return graph::Pointwise_attributes().set_mode(mode);
    };
    x = g.pointwise(x, n_.input(plan, one, kScale),
                    pointwise(cudnn_frontend::PointwiseMode_t::MUL));
    x = g.pointwise(x, n_.input(plan, one, kShift),
                    pointwise(cudnn_frontend::PointwiseMode_t::ADD));
    return g.pointwise(x, pointwise(cudnn_frontend::PointwiseMode_t::RELU_FWD));
  }

  template <typename Without>
  bool pays(Context& context, CudnnGraph& plan, const char* what, const Without& without) const {
    Tuning& tuning = context.gpu().tuning;
    const std::string name = n_.key(c_, what);
    if (const std::optional<std::string> known = tuning.find(name)) return *known == "yes";
    const std::optional<Scratch> memory = plan.scratch(context);
    if (tuning.candidates() <= 1 || !memory || plan.workspace() > CudnnGraph::kWorkspaceLimit)
      return true;
    const double apart = tuning.time_repeated(context, [&] { without(context, *memory); });
    const double together = tuning.time_repeated(
        context, [&] { plan.run(context, memory->tensors, memory->workspace); });
    const char* const answer = together < apart ? "yes" : "no";
    return tuning.remember(name, answer).value_or(answer) == "yes";
  }

  const CudnnTarget& target_;
  const ConvCase& c_;
  const ConvParams& n_;
};

}  // namespace

void ConvNormPlans::start(const CudnnTarget& target, const ConvCase& c, const ConvParams& n) {
  // Scale and shift are stored contiguously, and so are the two sums: each must be aligned to 16
  // bytes.
  if (c.dtype != DType::f16 || !n.channels_last || n.parts > 1 || c.bias || c.relu.on ||
      c.x[1] % 8 != 0 || c.y[1] % 8 != 0)
    return;
  sums = Maker(target, c, n).fprop(false);
}

void ConvNormPlans::prepare(const CudnnTarget& target, const ConvCase& c, const ConvParams& n,
                            CudnnGraph& fprop, CudnnGraph* wgrad) {
  if (fprop.workspace() > CudnnGraph::kWorkspaceLimit) sums.reset();
  if (!sums) return;
  const Maker maker(target, c, n);
  sums = maker.kept(std::move(sums), "sums pay", [&](Context& context, const Scratch& memory) {
    fprop.run(context, memory.tensors, memory.workspace);
    bias_gradient(context, c.y.count() / c.y[1], c.y[1], 1, memory.at<Half>(kY),
                  memory.at<float>(kSum), false);
  });
  if (!sums || !c.affine_input) return;
  // Takes as long as writing that x.
  const auto write = [&](Context& context, const Scratch& memory) {
    add_bias(context, c.x.count() / c.x[1], c.x[1], 1, memory.at<Half>(kShift), {true, 0},
             memory.at<Half>(kX));
  };
  affine =
      maker.kept(maker.fprop(true), "affine pays", [&](Context& context, const Scratch& memory) {
        sums->run(context, memory.tensors, memory.workspace);
        write(context, memory);
      });
  if (!affine || !wgrad || wgrad->workspace() > CudnnGraph::kWorkspaceLimit) return;
  affine_wgrad =
      maker.kept(maker.wgrad(), "affine weights pay", [&](Context& context, const Scratch& memory) {
        wgrad->run(context, memory.tensors, memory.workspace);
        write(context, memory);
      });
}

}  // namespace crema
