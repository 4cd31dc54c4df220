// The interpreter's lock: released around computations, taken around callbacks, and neither once
// the interpreter ends.
//
// Python ends a daemon thread that wants the lock by unwinding its stack. That aborts the process
// if the thread waits in a destructor, and frees objects without the lock. So from the moment the
// interpreter ends, a thread that would take the lock here waits for ever instead; the end of the
// process ends it. A running solver is asked to stop (ends_for_this_thread), a pass ends with its
// last layer, and Python's atexit waits for both, at most kSecondsToEnd.
#pragma once

#include <pybind11/pybind11.h>

#include <initializer_list>

namespace crema::python {

constexpr int kSecondsToEnd = 10;

// Whether another thread is ending the interpreter: code here should stop.
bool ends_for_this_thread();
// Whether it ends, for any thread. Locks taken now are never released.
bool interpreter_ends();

class ReleaseGil {
 public:
  // computes: the end of the interpreter waits for it. A thread that only waits for another does not.
  explicit ReleaseGil(bool computes = true);
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// From any thread, also one that holds the lock.
class TakeGil {
 public:
  TakeGil();
  ~TakeGil();
  TakeGil(const TakeGil&) = delete;
  TakeGil& operator=(const TakeGil&) = delete;

 private:
  bool computed_;
  PyGILState_STATE state_;
};

// Calls a user's function, with the lock held. If Python ends the thread meanwhile, the unwinding
// stops here. Throws py::error_already_set.
pybind11::object call_python(const pybind11::handle& function,
                             std::initializer_list<PyObject*> arguments);

}  // namespace crema::python
