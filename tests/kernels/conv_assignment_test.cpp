#include "kernels/conv/conv_assignment.h"

#include <gtest/gtest.h>

namespace crema {
namespace conv_assignment_test {

const std::vector<CandidateInfo> kConvolution = {{"cudnn"},      {"per_group"}, {"space_to_depth"},
                                                 {"stem_7x7s2"}, {"stem_3x3"},  {"implicit_gemm"}};
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
        if (calls.fprop) answer[ConvCall::fprop] = code % count;
        if (calls.dgrad) answer[ConvCall::dgrad] = code / count % count;
        if (calls.wgrad) answer[ConvCall::wgrad] = code / (count * count) % count;
        const int both = code / (count * count * count) - 1;
        if (calls.dgrad && calls.wgrad && both >= 0 &&
            candidates[static_cast<size_t>(both)].fused_gradients)
          answer[ConvCall::both_gradients] = both;
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
  for (const char* text : {"fprop=cudnn dgrad=cudnn", "dgrad=cudnn fprop=cudnn wgrad=cudnn",
                           "fprop=cudnn dgrad=cudnn wgrad=cudnn gradients=cudnn"})
    EXPECT_FALSE(ConvAssignment::parse(text, all, kConvolution)) << text;
}

}  // namespace conv_assignment_test
}  // namespace crema
