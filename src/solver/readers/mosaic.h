// Many small pictures as one.
#pragma once

#include <vector>

#include "solver/events/events.h"

namespace crema {

// Side by side on grey, in rows, each enlarged by a whole number until it can be seen, with its
// caption below. Of captions, digits and " > - . %" are drawn.
Picture mosaic_of(const std::vector<Picture>& pictures);

}  // namespace crema
