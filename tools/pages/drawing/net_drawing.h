// A net drawn as SVG: a separate file, or a part of a page.
#pragma once

#include <string>

#include "base/log.h"
#include "net/prototxt/net_input.h"
#include "tools/pages/drawing/net_boxes.h"

namespace crema {

// `note` is below the title: further remarks, such as assumed shapes. Colours follow the reader's
// light or dark scheme.
std::string net_svg(const NetBoxes& net, const std::string& note);

// Builds the net on the CPU for its shapes and its plan. If its data are not there, assumes the
// shapes in the sources' own fields; if that is not enough, or a layer's type is unknown, draws the
// net without shapes. Either is reported in a note in the drawing, and as a warning. Error for a
// wrong net.
std::string net_svg(const NetInput& input, const std::string& title, Log& log);

}  // namespace crema
