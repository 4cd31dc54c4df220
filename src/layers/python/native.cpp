#include "layers/python/native.h"

#include "layers/python/param_str.h"
#include "layers/python_hook.h"
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
[[maybe_unused]] const bool overrides = OverridingRegistry::add("Python", overriding_module);

}  // namespace

std::string overriding_module(const LayerParameter& message, const std::string& folder) {
  if (message.type() != "Python" || !find_native(message)) return "";
  if (ParamStr(message).value().find("native")) return "";
  return find_python_module(message.python_param().module(), folder);
}

LayerParameter as_native(LayerParameter message) {
  PythonParameter& python = *message.mutable_python_param();
  python.set_module(cat("crema_native.", python.module()));  // found by its last parts, and no file
  return message;
}

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
