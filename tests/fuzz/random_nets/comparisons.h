// Ways to run a net that must lead to the same values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/random_nets/rounding.h"

namespace crema::tests {

enum class Verdict {
  same,
  different,
  refused,    // by several ranks, which cannot divide every net
  undecided,  // a ReLU or a maximum may decide either way
  skipped,    // does not concern this net
};

struct Judgement {
  Verdict verdict = Verdict::same;
  std::string text;  // describes a difference or a refusal
};

struct Comparison {
  std::string name;
  Judgement (*judge)(const RandomNet& net, Rounding& rounding);
};

// Those that this machine supports.
const std::vector<Comparison>& comparisons();
Judgement judge(const Comparison& comparison, const RandomNet& net, Rounding& rounding);

}  // namespace crema::tests
