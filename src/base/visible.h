// Texts out of files, such as the names of layers, on their way to logs and terminals.
#pragma once

#include <string>
#include <string_view>

namespace crema {

// Line breaks, escapes and other control characters, marks that turn the direction of writing, and
// bytes that are no UTF-8 become "\n", "\r" or "\033" (octal, as in a prototxt). Tabs stay.
std::string visible(std::string_view text);

}  // namespace crema
