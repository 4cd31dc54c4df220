// -tensorboard and -tensorboard_histograms.
#pragma once

#include <string>

namespace crema {

// The folder for event files: that of the flag, or for "auto" the folder `tensorboard` in `beside`;
// "": none. Error if there is a file with that name, or if histograms are requested without it.
std::string tensorboard_folder(const std::string& beside);

}  // namespace crema
