// The names that PyTorch, Keras, ONNX and Darknet use for fields of Crema.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>

namespace crema {

// ` (did you mean "kernel_size"?)` for kernel or ksize in a convolution; a hint that belongs with it
// follows the question. `; a loss is a layer of the net: ...` for a word that is no field here.
// "" for words that no other framework uses in this block.
std::string other_field_name(const google::protobuf::Descriptor& type, std::string_view word);

}  // namespace crema
