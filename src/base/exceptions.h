// The library's exceptions. CMake copies this text into the installed crema.h, so both have a guard
// that travels with it instead of #pragma once.
#ifndef CREMA_EXCEPTIONS_H
#define CREMA_EXCEPTIONS_H

#include <stdexcept>

namespace crema {

// what() is a complete message for a person: the place, what was found, what was expected, and what
// to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The device is unusable for the rest of this process: it was lost, or a failure left its memory
// unreadable. Only previously saved data survives.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

}  // namespace crema

#endif
