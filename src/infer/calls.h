// What all C functions do: exceptions become a status and a message.
#pragma once

#include <new>
#include <string>

#include "crema.h"
#include "crema_infer.h"

namespace crema::c_api {

// The caller's mistake, as opposed to one in the data.
class Misuse : public Error {
 public:
  using Error::Error;
};

// The thread's last one.
std::string& message();
crema_status failed(crema_status status, const char* reason);

// Calls `work`, whose Errors give the status `problem`.
template <typename Work>
crema_status guarded(crema_status problem, const Work& work) noexcept {
  try {
    work();
    return CREMA_OK;
  } catch (const Misuse& error) {
    return failed(CREMA_INVALID_ARGUMENT, error.what());
  } catch (const DeviceLost& error) {
    return failed(CREMA_NO_DEVICE, error.what());
  } catch (const Error& error) {
    return failed(problem, error.what());
  } catch (const std::bad_alloc&) {
    return failed(CREMA_NO_MEMORY, "not enough memory");
  } catch (const std::exception& error) {
    return failed(CREMA_FAILED, error.what());
  } catch (...) {
    return failed(CREMA_FAILED, "an unknown exception");
  }
}

inline void require(bool condition, const std::string& problem) {
  if (!condition) throw Misuse(problem);
}

inline void require_pointer(const void* pointer, const char* name) {
  if (!pointer) throw Misuse(std::string(name) + " is NULL");
}

}  // namespace crema::c_api
