// ContinuationIndicator (forks): marks the first step of every batch as the beginning of a
// sequence, for the second bottom of LSTM and RNN.
//   y[t,n] = t > 0 ? 1 : 0
// Shapes: y (time_step, batch_size); if batch_size is absent a bottom gives it, along its `axis`.
// If ranks share batches (-batch_mode total), batch_size is that of all of them together.
// Parameters: none.
// Gradient: none.
#include "kernels/pointwise/pointwise.h"
#include "layers/divided_batch.h"
#include "layers/layer.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

template <typename T>
struct Indicate {
  T* y;
  int64_t sequences;
  CREMA_HD void operator()(int64_t t, int64_t n) const { y[t * sequences + n] = T(t > 0); }
};

class ContinuationIndicatorLayer : public Layer, public DividedBatch {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::generated};

 private:
  Arity bottoms() const override { return {0, 1}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool reads_values(int) const override { return false; }

  void setup(Context& context, const std::vector<Shape>&) override {
    if (training()) world_ = context.world();
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const auto& p = params<ContinuationIndicatorParameter>();
    require(p.time_step() > 0, "continuation_indicator_param has no time_step (or 0): how many ",
            "steps has a sequence?");
    require(p.batch_size() > 0 || !bottoms.empty(),
            "continuation_indicator_param has no batch_size (or 0), and no bottom says how many ",
            "sequences there are");
    int64_t sequences =
        p.batch_size() > 0 ? p.batch_size() : bottoms[0][bottoms[0].canonical_axis(p.axis())];
    if (is_divided()) sequences = world_->share_of(sequences).count;
    return {{{p.time_step(), sequences}}, {}};
  }

  bool is_divided() const {
    const int64_t sequences = params<ContinuationIndicatorParameter>().batch_size();
    return sequences > 0 && world_ && world_->divides_batches && has_samples(sequences);
  }
  void double_samples(std::vector<Shape>& tops) const override {
    if (is_divided()) tops[0][1] *= 2;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& y = pass.top[0];
    on(y, [&]<typename T>() {
      parallel_rows(context, y.shape()[0], y.shape()[1], Indicate<T>{y.data<T>(), y.shape()[1]});
    });
  }

  Communicator* world_ = nullptr;  // in training
};

}  // namespace
REGISTER_LAYER(ContinuationIndicator, ContinuationIndicatorLayer);
}  // namespace crema
