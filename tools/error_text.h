// What the user is told of an exception.
#pragma once

#include <exception>
#include <new>
#include <string>

namespace crema {

inline std::string error_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return "out of memory; a smaller -batch or batch_size needs less";
  return error.what();
}

}  // namespace crema
