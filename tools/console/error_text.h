// The message for the user about an exception.
#pragma once

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace crema {

inline std::string error_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return "out of memory; a smaller -batch or batch_size needs less";
  if (const auto* refused = dynamic_cast<const std::system_error*>(&error);
      refused && refused->code() == std::errc::resource_unavailable_try_again)
    return "the system starts no more threads; free some memory, or raise the limit of memory "
           "(ulimit -v) or of processes (ulimit -u)";
  if (const auto* refused = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    // "filesystem error: cannot create directories: Not a directory [PATH]".
    std::string text = refused->what();
    text.erase(0, text.find(": ") == text.npos ? 0 : text.find(": ") + 2);
    text.resize(std::min(text.size(), text.find(" [")));
    return refused->path1().string() + ": " + text;
  }
  return error.what();
}

}  // namespace crema
