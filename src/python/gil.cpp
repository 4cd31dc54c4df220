#include "python/gil.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

namespace {

struct End {
  std::atomic<bool> begun = false;
  std::atomic<std::thread::id> thread;  // the one that ends the interpreter
  std::atomic<int> computing = 0;       // threads that compute, or are about to take the lock
  std::atomic<int> stopped = 0;         // threads that wait for good
};

// Never destroyed: threads look at it while the process ends.
End& end() {
  static auto* const state = new End;
  return *state;
}

thread_local bool computes_here = false;

void set_computing(bool computes) {
  if (computes != computes_here) end().computing += computes ? 1 : -1;
  computes_here = computes;
}

[[noreturn]] void stop_here() {
  ++end().stopped;
  set_computing(false);
  while (true) pause();
}

// Counts this thread first, so that either it sees the end or the end waits for it.
void prepare_to_take() {
  set_computing(true);
  if (ends_for_this_thread()) stop_here();
}

// Static objects must not be destroyed under threads that still use them.
[[maybe_unused]] void leave_threads(int status, void*) {
  if (end().computing == 0 && end().stopped == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

// Called by Python's atexit.
void end_calls() {
  using Clock = std::chrono::steady_clock;
  end().thread = std::this_thread::get_id();
  end().begun = true;
#ifdef __GLIBC__
  on_exit(leave_threads, nullptr);
#endif
  const py::gil_scoped_release release;  // for threads that wait for it in a destructor
  const auto deadline = Clock::now() + std::chrono::seconds(kSecondsToEnd);
  while (end().computing > 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void forget_other_threads() {
  end().computing = computes_here ? 1 : 0;
  end().stopped = 0;
}

}  // namespace

bool ends_for_this_thread() {
  return end().begun && end().thread.load() != std::this_thread::get_id();
}

bool interpreter_ends() { return end().begun; }

ReleaseGil::ReleaseGil(bool computes) {
  set_computing(computes);
  state_ = PyEval_SaveThread();
  if (ends_for_this_thread()) stop_here();
}

ReleaseGil::~ReleaseGil() {
  prepare_to_take();
  PyEval_RestoreThread(state_);
  set_computing(false);
}

TakeGil::TakeGil() : computed_(computes_here) {
  prepare_to_take();
  state_ = PyGILState_Ensure();
  set_computing(false);
}

TakeGil::~TakeGil() {
  set_computing(computed_);
  PyGILState_Release(state_);
  if (computed_ && ends_for_this_thread()) stop_here();
}

py::object call_python(const py::handle& function, std::initializer_list<PyObject*> arguments) {
  PyObject* result = nullptr;
#ifdef __GLIBCXX__
  try {
    result = PyObject_Vectorcall(function.ptr(), arguments.begin(), arguments.size(), nullptr);
  } catch (const abi::__forced_unwind&) {
    stop_here();
  }
#else
  result = PyObject_Vectorcall(function.ptr(), arguments.begin(), arguments.size(), nullptr);
#endif
  if (!result) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// Its objects would be shared with the interpreter that imported the module first, and calls would take
// that one's lock.
void require_main_interpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return;
  throw py::import_error(
      "crema runs in the main interpreter only, and this is a sub-interpreter: use a process "
      "(multiprocessing), or with mod_wsgi WSGIApplicationGroup %{GLOBAL}");
}

void bind_gil(py::module_& module) {
  py::module_::import("atexit").attr("register")(py::cpp_function(&end_calls));
  module.def("_require_main_interpreter", &require_main_interpreter,
             "ImportError in a sub-interpreter.");
  module.def("_forget_other_threads", &forget_other_threads, "For a forked process.");
}

}  // namespace crema::python
