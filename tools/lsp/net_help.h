// What a net and a solver say of a blob, a layer and the learning rate, for an editor: Markdown; "" if it is unknown, as
// in a file with mistakes.
#pragma once

#include <string>

#include "tools/lsp/open_files.h"

namespace crema {

// Shape and bytes of the blob in a top or bottom of a layer, which layers write and read it, and with which the planner
// fuses its writer on a CPU.
std::string blob_help(const Document& document, const OpenFiles& files, const TypedPlace& place,
                      const std::string& blob, bool is_top);

// Shapes, parameters and multiply-adds of a layer.
std::string layer_help(const Document& document, const OpenFiles& files, const TypedPlace& place);

// The learning rate as numbers.
std::string rate_help(const Document& document, const OpenFiles& files);

}  // namespace crema
