// DummyData: tops written by fillers, for tests and timing. Constant ones are written once, others
// in every pass unless `refill: false` keeps the first values.
// Shapes: one `shape` for all tops or one for each (or num, channels, height, width of old files).
// Parameters: none.
// Gradient: none (nothing comes before it).
#include "layers/filler.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class DummyDataLayer : public Layer {
  const DummyDataParameter& p() const { return params<DummyDataParameter>(); }
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, -1}; }
  bool works_on_host() const override { return true; }
  bool keeps_tops() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context&, const std::vector<Shape>&) override {
    const int tops = message().top_size(), fillers = p().data_filler_size();
    require(fillers <= 1 || fillers == tops,
            "there may be no data_filler, one, or one for each of ", tops, " tops, but there are ",
            fillers);
  }

  Inference infer(const std::vector<Shape>&) const override {
    const int tops = message().top_size();
    const auto check = [&](int entries, const char* what) {
      require(entries == 1 || entries == tops, "dummy_data_param needs one ", what,
              " for all tops or one for each of ", tops, ", but it has ", entries);
    };
    Inference inference;
    if (p().shape_size() > 0) {
      check(p().shape_size(), "shape");
      for (int i = 0; i < tops; ++i) {
        const auto& dims = p().shape(p().shape_size() == 1 ? 0 : i).dim();
        inference.tops.emplace_back(std::vector<int64_t>(dims.begin(), dims.end()));
      }
      return inference;
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
      inference.tops.push_back(
          {at(p().num(), i), at(p().channels(), i), at(p().height(), i), at(p().width(), i)});
    }
    return inference;
  }

  Prepared prepare(Context&, const Preparation& preparation) override {
    filled_.assign(preparation.tops.size(), nullptr);
    return {};
  }

  void forward(Context& context, const Forward& pass) override {
    for (size_t i = 0; i < pass.top.size(); ++i) {
      const FillerParameter& filler = p().data_filler_size() == 0
                                          ? FillerParameter::default_instance()
                                          : p().data_filler(p().data_filler_size() == 1 ? 0 : i);
      const bool constant = filler.type() == "constant" || !p().refill();
      if (constant && filled_[i] == pass.top[i].raw()) continue;
      fill(context, filler, context.random(mix(id(), i), p().refill() ? pass.pass : 0),
           pass.top[i]);
      filled_[i] = pass.top[i].raw();
    }
  }

  std::vector<const void*> filled_;  // memory that already holds each constant top
};

}  // namespace
REGISTER_LAYER(DummyData, DummyDataLayer);
}  // namespace crema
