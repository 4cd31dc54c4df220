// Input: tops that a program fills before each pass (deploy nets).
// Shapes: one `shape` for all tops or one per top.
// Parameters: none.
// Gradient: none (nothing comes before it).
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class InputLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source, .content = SourceContent::given};

 private:
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, -1}; }
  LayerTraits traits() const override {
    return {.makes_any_format = true, .keeps_tops = true, .reads = {false, false}};
  }

  Inference infer(const std::vector<Shape>&) const override {
    const auto& shapes = params<InputParameter>().shape();
    const int tops = message().top_size();
    require(shapes.size() == 1 || shapes.size() == tops,
            "input_param needs one shape for all tops or one for each of ", tops, ", but it has ",
            shapes.size());
    Inference inference;
    for (int i = 0; i < tops; ++i) {
      const auto& dims = shapes.Get(shapes.size() == 1 ? 0 : i).dim();
      inference.tops.emplace_back(std::vector<int64_t>(dims.begin(), dims.end()));
    }
    return inference;
  }

  void forward(Context&, const Forward&) const override {}
};

}  // namespace
REGISTER_LAYER(Input, InputLayer);
}  // namespace crema
