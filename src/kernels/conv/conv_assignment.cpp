#include "kernels/conv/conv_assignment.h"

#include "base/strings.h"

namespace crema {
const char* name_of(ConvCall call) {
  static constexpr const char* kNames[] = {"fprop", "dgrad", "wgrad", "gradients"};
  return kNames[static_cast<size_t>(call)];
}

std::string ConvAssignment::text(const std::vector<CandidateInfo>& candidates) const {
  std::string text;
  for (ConvCall call : kCalls) {
    const int index = (*this)[call];
    if (index == kNone) continue;
    text += cat(text.empty() ? "" : " ", name_of(call), "=",
                candidates[static_cast<size_t>(index)].name);
  }
  return text;
}

std::optional<ConvAssignment> ConvAssignment::parse(const std::string& text, const ConvCalls& calls,
                                                    const std::vector<CandidateInfo>& candidates) {
  ConvAssignment found;
  for (const std::string& word : split(text, ' ')) {
    for (ConvCall call : kCalls) {
      for (size_t i = 0; i < candidates.size(); ++i) {
        if (calls.has(call) && candidates[i].supports(call) &&
            word == cat(name_of(call), "=", candidates[i].name))
          found[call] = static_cast<int>(i);
      }
    }
  }
  for (ConvCall call : kCalls) {
    const bool optional = call == ConvCall::both_gradients;
    if (calls.has(call) && !optional && found[call] == kNone) return std::nullopt;
  }
  // Words in another order, twice or unknown are nobody's answer.
  return found.text(candidates) == text ? std::optional(found) : std::nullopt;
}

}  // namespace crema
