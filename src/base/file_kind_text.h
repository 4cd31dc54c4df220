// Recognizes kinds of texts and of protocol buffer messages by their beginnings.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/file_kind.h"

namespace crema {

// `text`: the beginning of the file.
FileKind text_kind(std::string_view text);

// `bytes`: the beginning of a file of `size` bytes: weights, a solver state, a mean, an ONNX model.
// Empty for any other file.
FileKind message_kind(std::string_view bytes, uint64_t size);

}  // namespace crema
