// DummyData: tops written by fillers, for tests and timing. Constant ones are written once, others
// in every pass unless `refill: false` keeps the first values.
// Shapes: one `shape` for all tops or one per top (or num, channels, height, width of old files).
// With several training ranks, each has its own part of random values. If they share batches
// (-batch_mode total), the first axis of a shape is the batch of all of them together. With more
// ranks than that, or in a top whose first axis is not the batch (that of the net's other source,
// or of the first top), each rank has the same values.
// Parameters: none.
// Gradient: none (nothing comes before it).
#include "layers/divided_batch.h"
#include "layers/filler.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class DummyDataLayer : public Layer, public DataSource, public DividedBatch {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::generated};

 private:
  const DummyDataParameter& p() const { return params<DummyDataParameter>(); }
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, -1}; }
  DataSource* source() override { return this; }
  LayerTraits traits() const override {
    return {.keeps_tops = true, .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    if (training()) world_ = context.world();
    const int tops = message().top_size(), fillers = p().data_filler_size();
    require(fillers <= 1 || fillers == tops,
            "there may be no data_filler, one, or one for each of ", tops, " tops, but there are ",
            fillers);
  }

  Inference infer(const std::vector<Shape>&) const override {
    Inference inference{whole_shapes(), {}};
    for (Shape& shape : inference.tops) {
      if (const BatchShare samples = share_of(shape); samples.all > 0) shape[0] = samples.count;
    }
    return inference;
  }

  // This rank's part of a top. `whole` is the top of all ranks or, without batch_mode total, the
  // size of each rank's.
  BatchShare share_of(const Shape& whole) const {
    if (!world_ || whole.axes() == 0 || !has_samples(whole[0]) ||
        (world_->divides_batches && whole[0] < world_->ranks))
      return {};
    return world_->share_of(whole[0]);
  }
  BatchShare share() const override {
    for (const Shape& whole : whole_shapes()) {
      if (const BatchShare samples = share_of(whole); samples.all > 0) return samples;
    }
    return {};
  }

  void double_samples(std::vector<Shape>& tops) const override {
    const std::vector<Shape> whole = whole_shapes();
    for (size_t i = 0; i < tops.size(); ++i) {
      if (share_of(whole[i]).all > 0) tops[i][0] *= 2;
    }
  }

  // As the file gives them.
  std::vector<Shape> whole_shapes() const {
    const int tops = message().top_size();
    const auto check = [&](int entries, const char* what) {
      require(entries == 1 || entries == tops, "dummy_data_param needs one ", what,
              " for all tops or one for each of ", tops, ", but it has ", entries);
    };
    std::vector<Shape> shapes;
    if (p().shape_size() > 0) {
      check(p().shape_size(), "shape");
      for (int i = 0; i < tops; ++i) {
        const auto& dims = p().shape(p().shape_size() == 1 ? 0 : i).dim();
        shapes.emplace_back(std::vector<int64_t>(dims.begin(), dims.end()));
      }
      return shapes;
    }
    require(p().num_size() > 0, "dummy_data_param needs a shape");
    const auto at = [](const auto& entries, int i) -> int64_t {
      return entries.Get(entries.size() == 1 ? 0 : i);
    };
    check(p().num_size(), "num");
    check(p().channels_size(), "channels");
    check(p().height_size(), "height");
    check(p().width_size(), "width");
    for (int i = 0; i < tops; ++i) {
      shapes.push_back(
          {at(p().num(), i), at(p().channels(), i), at(p().height(), i), at(p().width(), i)});
    }
    return shapes;
  }

  struct State : LayerState {
    std::vector<const void*> filled;  // memory that already holds each constant top
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<State>().filled.assign(preparation.tops.size(), nullptr);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    std::vector<const void*>& filled = state_of<State>(pass).filled;
    const std::vector<Shape> whole = whole_shapes();
    for (size_t i = 0; i < pass.top.size(); ++i) {
      const FillerParameter& filler = p().data_filler_size() == 0
                                          ? FillerParameter::default_instance()
                                          : p().data_filler(p().data_filler_size() == 1 ? 0 : i);
      const bool constant = filler.type() == "constant" || !p().refill();
      if (constant && filled[i] == pass.top[i].raw()) continue;
      fill(context, filler, context.random(mix(id(), i), p().refill() ? pass.pass : 0), pass.top[i],
           share_of(whole[i]));
      filled[i] = pass.top[i].raw();
    }
  }

  Communicator* world_ = nullptr;  // in training
};

}  // namespace
REGISTER_LAYER(DummyData, DummyDataLayer);
}  // namespace crema
