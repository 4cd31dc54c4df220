// AccuracyDecode (MyCaffe): the fraction of examples whose label is the nearest by Decode's
// distances.
//   y = (number of examples whose label alone has the smallest distance) /
//       (number of examples, without those of ignore_label), 0 if there are none
// Shapes: distances (N, K), labels (N) or (N, D...), of which the first of each example counts; y
// is a scalar.
// Parameters: none.
// Gradient: none.
#include "layers/layer.h"
#include "layers/loss/accuracy.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class AccuracyDecodeLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::classes};

 private:
  const AccuracyParameter& p() const { return params<AccuracyParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().top_k() == 1 && p().axis() == 1, "top_k is ", p().top_k(), " and axis ", p().axis(),
            ", but AccuracyDecode only knows the nearest label, along axis 1: both must be 1");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &distances = bottoms[0], &labels = bottoms[1];
    require(distances.axes() > 1 && distances.count(2) == 1 && labels.axes() > 0 &&
                labels[0] == distances[0],
            "there must be a row of distances and at least one label for each example, but the "
            "bottoms are ",
            distances.brief(), " and ", labels.brief());
    return {{Shape()}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // The workspace of find_hits.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace =
        static_cast<size_t>(preparation.bottoms[0][0]) * size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &distances = pass.bottom[0], &labels = pass.bottom[1];
    const int64_t examples = distances.shape()[0], classes = distances.shape()[1],
                  each = labels.shape().count(1);
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, each, pass.pass, pass.live_pass};
    check_labels(labels, classes, each,
                 p().has_ignore_label() ? std::optional<int>(p().ignore_label()) : std::nullopt);
    on(distances, [&]<typename T>() {
      const ScoredExamples<T> of{distances.data<T>(),    labels.data<T>(),   classes, 1,   1,
                                 p().has_ignore_label(), p().ignore_label(), true,    each};
      const ExampleHit<T> hit = find_hits(context, of, examples, pass.workspace.data<T>(), note);
      parallel_totals<T, 2>(context, 1, examples, hit, HitShare<T>{pass.top[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

}  // namespace
REGISTER_LAYER(AccuracyDecode, AccuracyDecodeLayer);
}  // namespace crema
