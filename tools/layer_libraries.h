// -layers: shared libraries with layers of the user's own (layers/custom_layer.h), which they register as
// they are loaded.
#pragma once

#include <string>

namespace crema {

// Loads the files of a list with commas, for the rest of the process. Error for one that cannot be loaded or
// registers nothing.
void load_layers(const std::string& files);

}  // namespace crema
