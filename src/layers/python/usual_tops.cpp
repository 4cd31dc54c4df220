#include "layers/python/usual_tops.h"

#include "base/error.h"
#include "layers/python/native.h"
#include "proto/layer.pb.h"

namespace crema {

std::vector<Shape> usual_tops_of(const LayerParameter& message) {
  if (message.type() != "Python") return {};
  try {
    if (!find_native(message)) return {};
    const std::unique_ptr<Layer> layer = make_layer(message, true);
    const auto* source = dynamic_cast<const UsualTops*>(layer.get());
    if (!source) return {};
    std::vector<Shape> tops = source->usual_tops();
    return static_cast<int>(tops.size()) == message.top_size() ? tops : std::vector<Shape>();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace crema
