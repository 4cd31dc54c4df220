#include "layers/layer_facts.h"

#include "base/strings.h"
#include "layers/layer.h"

namespace crema {

LayerFacts facts_of(const std::string& type) {
  if (const LayerMaker* const maker = LayerRegistry::find(type)) return maker->facts;
  LayerFacts facts;
  if (ends_with(type, "Loss")) facts.kind = LayerKind::loss;
  if (ends_with(type, "Accuracy")) facts.kind = LayerKind::metric;
  return facts;
}

}  // namespace crema
