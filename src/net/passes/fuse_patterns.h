// The table of the fuse pass: which neighbouring layers one fused layer replaces. The fused layer's
// LayerHooks::is_profitable says whether it is faster than its members.
#pragma once

#include <string>
#include <vector>

#include "net/plan/plan.h"

namespace crema {

// The nodes that match a pattern, in its order.
struct FuseMatch {
  const Plan& plan;
  std::vector<int> nodes;

  // The first node of this type.
  const PlanNode& node(const char* type) const;
};

struct FusePattern {
  // Types along a path, '+' between: each node is the only reader of the one before. "Sum" is an
  // Eltwise that adds two blobs. This is the type of the fused layer, too.
  std::string path;
  // Along another path, which ends in the other bottom of "Sum"; in the fused layer's type it comes
  // before "Sum". "": that bottom may come from anywhere.
  std::string branch = "";
  // Checks what the types alone do not tell; null: no further check.
  bool (*fits)(const FuseMatch&) = nullptr;

  // Type of the fused layer.
  std::string type() const;
};

// In order of preference: at each node the first pattern that matches and whose layer is profitable
// is used.
const std::vector<FusePattern>& fuse_patterns();

// Whether a node has the type that this word of a pattern names.
bool matches_word(const std::string& word, const PlanNode& node);

}  // namespace crema
