// Makes texts from files, such as layer names, safe to print in logs and terminals.
#pragma once

#include <string>
#include <string_view>

namespace crema {

// Escapes line breaks, other control characters, marks that change the writing direction, and bytes
// that are not UTF-8, as "\n", "\r" or "\033" (octal, as in a prototxt). Tabs stay.
std::string visible(std::string_view text);

}  // namespace crema
