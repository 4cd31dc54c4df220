// The manual that data_scripts/manual.sh has built, where there is one.
#pragma once

#include <string>

namespace crema {

// The address of the page of a layer type: under CREMA_MANUAL, a folder or an address on the web, else
// in the manual that was installed or built with the program. "": there is no such page.
std::string address_of_layer(const std::string& type);

}  // namespace crema
