// -tensorboard and -tensorboard_histograms.
#pragma once

#include <string>

namespace crema {

// The folder for event files: that of the flag, or for "auto" the folder `tensorboard` in `beside`;
// "": none is wanted. Error when there is a file in its place, or histograms are asked for without
// it.
std::string tensorboard_folder(const std::string& beside);

}  // namespace crema
