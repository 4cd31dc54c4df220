// The page of `crema serve`, where a picture can be dropped.
#pragma once

#include <string>
#include <vector>

#include "tools/serve/served_model.h"

namespace crema {

std::string serve_page(const std::vector<const ServedModel*>& models);
// Files that it loads.
std::string serve_style();
const char* serve_script();

}  // namespace crema
