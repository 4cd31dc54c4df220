// Describes what a path from a user leads to, for messages about something that was expected
// instead.
#pragma once

#include <string>

#include "base/file_kind.h"

namespace crema {

// For a folder, a database with the kind of its records, or any other file.
FileKind kind_of(const std::string& path);
std::string what_it_is(const std::string& path);

}  // namespace crema
