// How the library throws its one exception type: for every mistake of a user or of the machine. It
// never exits or prints.
#pragma once

#include "base/exceptions.h"
#include "base/strings.h"

namespace crema {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(cat(parts...));
}

// Checks an input (never an invariant of our own: that is assert). A function, so the parts are
// worked out either way, perhaps before the condition: they must be valid, and cheap, when it
// holds. Else (errno, long texts, once a sample) write if (...) fail(...).
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(parts...);
}

}  // namespace crema
