#include "layers/vision/layer_quantization.h"

#include <cmath>

#include "base/error.h"
#include "proto/params/quantization.pb.h"

namespace crema {
namespace {

constexpr int kFloatBits = 32;  // nothing is rounded
constexpr int kMostBits = 24;   // integers that float32 has

void require_bits(const char* field, int bits) {
  require(bits >= 2 && bits <= kMostBits, field, " is ", bits, "; expected 2 to ", kMostBits,
          ", or 32 for float32");
}

float step_of_scale(const char* field, float scale) {
  require(std::isfinite(scale) && scale > 0 && std::isfinite(1 / scale), field, " is ", scale,
          "; expected a positive number, 1 divided by the step");
  return 1 / scale;
}

float step_of_bits(const char* field, int fractional_bits) {
  require(std::abs(fractional_bits) <= 100, field, " is ", fractional_bits,
          "; expected at most 100 and at least -100");
  return std::ldexp(1.0f, -fractional_bits);
}

QuantizedValues values_of(float step, int bits, bool has_sign) {
  const float count = std::ldexp(1.0f, bits);
  return has_sign ? QuantizedValues{step, -count / 2, count / 2 - 1}
                  : QuantizedValues{step, 0, count - 1};
}

}  // namespace

std::optional<LinearQuantization> layer_quantization(const QuantizationParameter& p, int64_t rows) {
  if (p.precision() != QuantizationParameter::DYNAMIC_FIXED_POINT) return std::nullopt;
  LinearQuantization q;
  if (const int bits = static_cast<int>(p.bw_layer_in()); bits != kFloatBits) {
    require_bits("bw_layer_in", bits);
    if (p.scale_in_size() > 0) {
      q.x = values_of(step_of_scale("scale_in", p.scale_in(0)), bits,
                      p.is_negative_input() && !p.force_u8_input());
    } else if (p.fl_layer_in_size() > 0) {
      q.x = values_of(step_of_bits("fl_layer_in", p.fl_layer_in(0)), bits, true);
    }
  }
  if (const int bits = static_cast<int>(p.bw_params()); bits != kFloatBits) {
    require_bits("bw_params", bits);
    if (p.params_follow()) {
      const QuantizedValues one = values_of(1, bits, true);
      q.w = QuantizedWeights{{}, one.low, one.high};
    }
    std::vector<float> steps;
    for (const float scale : p.scale_params())
      steps.push_back(step_of_scale("scale_params", scale));
    if (steps.empty() && p.fl_params_size() > 0)
      steps.push_back(step_of_bits("fl_params", p.fl_params(0)));
    require(steps.size() <= 1 || static_cast<int64_t>(steps.size()) == rows, "scale_params has ",
            steps.size(), " values; expected one, or one for each of the ", rows, " outputs");
    if (!q.w && !steps.empty()) {
      const QuantizedValues one = values_of(steps[0], bits, true);
      q.w = QuantizedWeights{std::move(steps), one.low, one.high};
    }
  }
  if (const int bits = static_cast<int>(p.bw_layer_out());
      bits != kFloatBits && p.fl_layer_out_size() > 0) {
    require_bits("bw_layer_out", bits);
    q.y = values_of(step_of_bits("fl_layer_out", p.fl_layer_out(0)), bits, true);
  }
  if (!q.x && !q.w && !q.y) return std::nullopt;
  return q;
}

std::optional<LinearQuantization> quantization_in(const Preparation& preparation,
                                                  std::optional<LinearQuantization> quantization) {
  if (preparation.rounds || !quantization || !quantization->w || !quantization->w->follows())
    return quantization;
  quantization->w.reset();
  if (!quantization->x && !quantization->y) return std::nullopt;
  return quantization;
}

}  // namespace crema
