// The one exception type. The library throws it for every mistake of a user or of the machine; it
// never exits or prints.
#pragma once

#include <stdexcept>

#include "base/strings.h"

namespace crema {

// what() is a complete message for a person: where, what was found, what was expected, a way out.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The device is of no use to this process any more: it was lost, or work on it went so wrong that
// nothing there can be read. What was saved before is all there is.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

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
