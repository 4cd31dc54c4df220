// Which layers a field of the solver names. Patterns are RE2's: regular expressions as in most languages,
// without what would need more than one pass over the name (look-ahead, back-references).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace re2 {
class RE2;
}

namespace crema {

struct SolverFile;

class LayerPatterns {
 public:
  LayerPatterns() = default;
  // The values of a repeated field, "freeze" or "prune.keep". Error with the position of one that is not a
  // valid regular expression.
  LayerPatterns(const SolverFile& file, const std::string& field);

  bool empty() const { return patterns_.empty(); }
  // Whether one of them matches the whole name.
  bool match(const std::string& layer) const;
  // Error, with the position of the pattern, if one matches none of these layers. kind: what they are, "a layer
  // with parameters".
  void require_used(const SolverFile& file, const std::vector<std::string>& layers,
                    const std::string& kind) const;

 private:
  std::string field_;
  std::vector<std::shared_ptr<const re2::RE2>> patterns_;
};

// The layers that `layer` of a solver's block names, or all, without those of its `keep`.
class ChosenLayers {
 public:
  // block: "prune".
  ChosenLayers(const SolverFile& file, const std::string& block)
      : layer_(file, block + ".layer"), keep_(file, block + ".keep") {}

  bool has(const std::string& layer) const {
    return (layer_.empty() || layer_.match(layer)) && !keep_.match(layer);
  }
  void require_used(const SolverFile& file, const std::vector<std::string>& layers,
                    const std::string& kind) const {
    layer_.require_used(file, layers, kind);
    keep_.require_used(file, layers, kind);
  }

 private:
  LayerPatterns layer_, keep_;
};

}  // namespace crema
