// A net drawn as SVG: a file of its own, or a part of a page.
#pragma once

#include <string>

#include "base/log.h"
#include "net/prototxt/net_input.h"
#include "tools/pages/net_boxes.h"

namespace crema {

// `note` stands under the title: what else is to say, such as assumed shapes. Colours follow the
// reader's light or dark scheme.
std::string net_svg(const NetBoxes& net, const std::string& note);

// Builds the net on the CPU for its shapes and its plan. Where its data are not there, the shapes
// that the sources' own fields state are assumed; where that is not enough, or a layer's type is
// not known, the net is drawn without shapes. Either is said in a note in the drawing, and as a
// warning. Error for a net that is wrong.
std::string net_svg(const NetInput& input, const std::string& title, Log& log);

}  // namespace crema
