// Native versions of Python layers that public nets name: make_layer asks here for a layer of type
// "Python" before an interpreter is asked. README.md in this folder has the list.
//
// A version is known by its class and by the last parts of its module's name: "rpn.proposal_layer" is
// also found as "lib.rpn.proposal_layer". It stands in only where it takes as many bottoms and tops as
// the layer has, because forks kept the names of classes that they changed; param_str with
// 'native': False asks for the Python class.
#pragma once

#include <memory>

#include "layers/layer.h"

namespace crema {

struct NativeMaker {
  std::unique_ptr<Layer> (*make)();
  // Or: turns the message into that of another type that computes the same.
  void (*translate)(LayerParameter& message, bool training);
  const char* file;
};
struct NativeTag {};
// Names are MODULE.CLASS, such as "rpn.proposal_layer.ProposalLayer".
using NativeRegistry = Registry<NativeTag, NativeMaker>;

// nullptr: only Python can run the layer.
const NativeMaker* find_native(const LayerParameter& message);

// At the end of a layer's file, inside the anonymous namespace. The layer reads its settings with
// ParamStr (param_str.h).
#define REGISTER_PYTHON(Class, module, name)                                                 \
  [[maybe_unused]] static const bool registered_python_##Class = crema::NativeRegistry::add( \
      module "." name,                                                                       \
      {[]() -> std::unique_ptr<crema::Layer> { return std::make_unique<Class>(); }, nullptr, \
       __FILE__})

}  // namespace crema
