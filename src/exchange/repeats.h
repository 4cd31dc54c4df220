// Shortens the text of a net: repeated blocks of layers, which differ in the numbers of their names,
// become `repeat` blocks.
#pragma once

#include <string>

namespace crema {

// `text` is that of net_text(): each layer from a line "layer {" to a line "}", and comments before
// it. Blocks of three layers or more that follow each other three times or more, and differ only in
// numbers of quoted texts that grow evenly, are written once, with the comments of the first one.
// The result is read as the same net; if nothing repeats, it is `text`.
std::string with_repeats(const std::string& text);

}  // namespace crema
