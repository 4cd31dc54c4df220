// What the library throws. CMake copies this text into the installed crema.h, so both have a guard
// that travels with it instead of #pragma once.
#ifndef CREMA_EXCEPTIONS_H
#define CREMA_EXCEPTIONS_H

#include <stdexcept>

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

}  // namespace crema

#endif
