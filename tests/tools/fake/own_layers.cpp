// A library for -layers: type "Fraction" is what is behind the decimal point.
#include <algorithm>
#include <cmath>

#include "crema.h"

namespace {

class Fraction final : public crema::CustomLayer {
  std::vector<Shape> tops(const std::vector<Shape>& bottoms) override { return {bottoms[0]}; }
  void forward(const Forward& pass) override {
    std::ranges::transform(pass.bottoms[0].values, pass.tops[0].values.begin(),
                           [](float x) { return x - std::floor(x); });
  }
  void backward(const Backward& pass) override {
    std::ranges::copy(pass.top_gradients[0].values, pass.bottom_gradients[0].values.begin());
  }
};

[[maybe_unused]] const bool registered = [] {
  crema::register_layer("Fraction", [](const auto&) { return std::make_unique<Fraction>(); });
  return true;
}();

}  // namespace
