// How the library throws its only exception type, for every error of the user or the machine; it
// never exits or prints.
#pragma once

#include "base/exceptions.h"
#include "base/strings.h"

namespace crema {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(cat(parts...));
}

// Checks an input (for invariants of our own use assert). It is a function, so its arguments are
// evaluated even when the condition holds: they must be valid and cheap then. Otherwise (errno,
// long texts, one check per sample) write if (...) fail(...).
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(parts...);
}

}  // namespace crema
