// Native versions of Python layers that public nets name: make_layer asks here for a layer of type
// "Python" before an interpreter is asked. README.md in this folder has the list.
//
// A module that is found on Python's path runs instead, since its author may have changed it; the log
// says so. param_str with 'native': True asks for the native version.
//
// A version is known by its class and by the last parts of its module's name: "rpn.proposal_layer" is
// also found as "lib.rpn.proposal_layer". It stands in only where it takes as many bottoms and tops as
// the layer has, because forks kept the names of classes that they changed; param_str with
// 'native': False asks for the Python class.
#pragma once

#include <memory>
#include <string>

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

// The file of the Python module that runs although a native version is known: the module is found on
// the path, and may have been changed. "": there is no such file, or param_str has 'native': True.
std::string overriding_module(const LayerParameter& message, const std::string& folder);
// The same layer for make_layer, but as the native version.
LayerParameter as_native(LayerParameter message);

// At the end of a layer's file, inside the anonymous namespace. The layer reads its settings with
// ParamStr (param_str.h).
#define REGISTER_PYTHON(Class, module, name)                                                 \
  [[maybe_unused]] static const bool registered_python_##Class = crema::NativeRegistry::add( \
      module "." name,                                                                       \
      {[]() -> std::unique_ptr<crema::Layer> { return std::make_unique<Class>(); }, nullptr, \
       __FILE__})

}  // namespace crema
