// Reads the comments of a deploy file that say how images become its inputs (net/preparation.h).
#pragma once

#include <string>

#include "proto/preparation.pb.h"

namespace crema {

// Empty if the text has no such comment. Relative paths that exist in the folder of `path` are
// resolved against it. Error: "path:line:column: what".
NetPreparation read_preparation(const std::string& text, const std::string& path);

}  // namespace crema
