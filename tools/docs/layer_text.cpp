#include "tools/docs/layer_text.h"

#include "layers/layer.h"
#include "layers/layer_docs.h"

namespace crema {

std::string documentation_of(const std::string& type) {
  const auto* const entry = LayerRegistry::find(type);
  if (!entry) return "";
  const std::string path = entry->file;
  const std::string file = path.substr(path.rfind('/') + 1);
  for (const LayerDoc& doc : layer_docs()) {
    if (doc.file == file) return doc.text;
  }
  return "";
}

}  // namespace crema
