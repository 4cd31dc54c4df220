// What the user is told of an exception.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace crema {

inline std::string error_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return "out of memory; a smaller -batch or batch_size needs less";
  if (const auto* refused = dynamic_cast<const std::system_error*>(&error);
      refused && refused->code() == std::errc::resource_unavailable_try_again)
    return "the system starts no further thread; more memory, or a higher limit of it (ulimit -v) "
           "or of processes (ulimit -u), is needed";
  return error.what();
}

}  // namespace crema
