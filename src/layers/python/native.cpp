#include "layers/python/native.h"

#include "layers/python/param_str.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

bool within(int count, const Arity& arity) {
  return count >= arity.minimum && (arity.maximum < 0 || count <= arity.maximum);
}

// Turns a message that is to be translated.
std::unique_ptr<Layer> made(const NativeMaker& maker, LayerParameter& message, bool training) {
  if (maker.make) return maker.make();
  maker.translate(message, training);
  return LayerRegistry::find(message.type())->make();
}

std::unique_ptr<Layer> choose(LayerParameter& message, bool training) {
  const NativeMaker* maker = find_native(message);
  return maker ? made(*maker, message, training) : nullptr;
}

[[maybe_unused]] const bool chooses = ChooserRegistry::add("Python", choose);

}  // namespace

const NativeMaker* find_native(const LayerParameter& message) {
  const PythonParameter& python = message.python_param();
  const NativeMaker* maker = nullptr;
  for (std::string module = python.module();;) {
    maker = NativeRegistry::find(cat(module, ".", python.layer()));
    if (maker) break;
    const size_t dot = module.find('.');
    if (dot == module.npos) return nullptr;
    module = module.substr(dot + 1);
  }
  if (!ParamStr(message).flag("native", true)) return nullptr;
  LayerParameter copy = message;
  const std::unique_ptr<Layer> layer = made(*maker, copy, true);
  const bool takes =
      within(message.bottom_size(), layer->bottoms()) && within(message.top_size(), layer->tops());
  return takes ? maker : nullptr;
}

}  // namespace crema
