// Which candidate of the autotuner computes each call of a convolution or a fully connected layer,
// and the text that the tuning cache keeps of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/conv/conv_call.h"

namespace crema {

struct CandidateInfo {
  std::string name;
  bool fused_gradients = false;  // can compute both gradients in one call
  ConvCalls calls = {};          // that it supports

  bool supports(ConvCall call) const {
    return calls.has(call) && (call != ConvCall::both_gradients || fused_gradients);
  }
};

class ConvAssignment {
 public:
  static constexpr int kNone = -1;
  static constexpr ConvCall kCalls[] = {ConvCall::fprop, ConvCall::dgrad, ConvCall::wgrad,
                                        ConvCall::both_gradients};

  ConvAssignment() { candidate_.fill(kNone); }

  // An index into the candidates; kNone: the case does not make the call, or, of both gradients,
  // two calls compute them.
  int& operator[](ConvCall call) { return candidate_[static_cast<size_t>(call)]; }
  int operator[](ConvCall call) const { return candidate_[static_cast<size_t>(call)]; }

  // "fprop=cudnn wgrad=implicit_gemm".
  std::string text(const std::vector<CandidateInfo>& candidates) const;
  // None unless it is what text() gives of an assignment for these calls, which the case makes.
  static std::optional<ConvAssignment> parse(const std::string& text, const ConvCalls& calls,
                                             const std::vector<CandidateInfo>& candidates);

 private:
  std::array<int, std::size(kCalls)> candidate_;
};

}  // namespace crema
