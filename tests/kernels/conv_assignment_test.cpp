#include "kernels/conv/conv_assignment.h"

#include <gtest/gtest.h>

namespace crema {
namespace conv_assignment_test {

const std::vector<CandidateInfo> kConvolution = {
    {"cudnn"},      {"per_group"},     {"space_to_depth"},
    {"stem_7x7s2"}, {"implicit_gemm"}, {"direct_conv", false, {true, false, true}}};
const std::vector<CandidateInfo> kDepthwise = {{"depthwise", true}, {"depthwise_tensor", true}};

// Every answer that the autotuner can write is read back as it was, among them those of test nets,
// which make no gradients.
TEST(ConvAssignment, EveryAnswerIsReadBack) {
  for (const auto& candidates : {kConvolution, kDepthwise}) {
    const int count = static_cast<int>(candidates.size());
    for (int mask = 0; mask < 8; ++mask) {
      const ConvCalls calls{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
      for (int code = 0; code < count * count * count * (count + 1); ++code) {
        ConvAssignment answer;
        int rest = code;
        bool supported = true;
        for (ConvCall call : ConvAssignment::kCalls) {
          const bool both = call == ConvCall::both_gradients;
          const int one = both ? rest - 1 : rest % count;
          rest /= count;
          if (!calls.has(call) || one < 0) continue;
          const bool supports = candidates[static_cast<size_t>(one)].supports(call);
          if (supports) answer[call] = one;
          supported = supported && (supports || both);
        }
        if (!supported) continue;
        const std::string text = answer.text(candidates);
        const auto read = ConvAssignment::parse(text, calls, candidates);
        ASSERT_TRUE(read) << text;
        for (ConvCall call : ConvAssignment::kCalls) ASSERT_EQ((*read)[call], answer[call]) << text;
      }
    }
  }
}

TEST(ConvAssignment, OtherTextsAreNoAnswers) {
  const ConvCalls all, forward{true, false, false};
  EXPECT_TRUE(ConvAssignment::parse("fprop=cudnn", forward, kConvolution));
  for (const char* text : {"", "lll-", "fprop=cudnn ", "fprop=cudnn fprop=cudnn", "fprop=cud",
                           "fprop=depthwise", "fprop=cudnn dgrad=cudnn", "dgrad=cudnn"})
    EXPECT_FALSE(ConvAssignment::parse(text, forward, kConvolution)) << text;
  EXPECT_TRUE(
      ConvAssignment::parse("fprop=direct_conv dgrad=cudnn wgrad=direct_conv", all, kConvolution));
  for (const char* text : {"fprop=cudnn dgrad=cudnn", "fprop=cudnn dgrad=direct_conv wgrad=cudnn",
                           "dgrad=cudnn fprop=cudnn wgrad=cudnn",
                           "fprop=cudnn dgrad=cudnn wgrad=cudnn gradients=cudnn"})
    EXPECT_FALSE(ConvAssignment::parse(text, all, kConvolution)) << text;
}

}  // namespace conv_assignment_test
}  // namespace crema
