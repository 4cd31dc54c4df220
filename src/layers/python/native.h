// Native versions of well-known Python layers: for type "Python", make_layer looks here before it
// uses an interpreter. README.md in this folder has the list.
//
// A module that is found on Python's path runs instead, since its author may have changed it; the
// log reports that. param_str with 'native': True selects the native version.
//
// A version is identified by its class and the last parts of its module's name:
// "rpn.proposal_layer" also matches "lib.rpn.proposal_layer". It is used only if it takes as many
// bottoms and tops as the layer has, because forks kept the names of classes that they changed;
// param_str with 'native': False selects the Python class.
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

// The file of a Python module that runs instead of a native version: it is on the path, and may
// have been changed. "": there is no such file, or param_str has 'native': True.
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
