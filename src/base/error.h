// Functions that throw the library's only exception type, for every error of the user or the
// machine; the library never exits or prints.
#pragma once

#include "base/exceptions.h"
#include "base/strings.h"

namespace crema {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(cat(parts...));
}

// Checks an input (for our own invariants use assert). It is a function, so its arguments are
// evaluated even if the condition holds: they must then be valid and cheap. Otherwise (errno, long
// texts, one check per sample) write if (...) fail(...).
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(parts...);
}

}  // namespace crema
