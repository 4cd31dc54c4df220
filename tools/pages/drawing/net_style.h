// Colours and the widths of texts in a drawing of a net.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/drawing/net_boxes.h"

namespace crema {

// The style sheet: all of its rules are below the class "net", because a page with the drawing has
// its own rules.
std::string net_style();

// Its class in the style sheet, which gives it a colour.
const char* net_box_class(NetBoxKind kind);

// About as wide as browsers draw it, rather more.
double text_width(const std::string& text, double size);

// At most `most` characters, with an ellipsis in the middle. For display: unprintable characters
// are escaped before counting.
std::string shortened(const std::string& text, size_t most);

// Broken into lines of at most about `most` characters, at blanks.
std::vector<std::string> wrapped(const std::string& text, size_t most);

}  // namespace crema
