// LateLibrary: a shared library that is loaded with the first use of one of its functions. What it
// brings along would otherwise delay the start of every program.
#pragma once

#include <atomic>
#include <mutex>

namespace crema {

class LateLibrary {
 public:
  // file: in libcrema's folder, and linked to the library that has the functions.
  explicit constexpr LateLibrary(const char* file) : file_(file) {}
  // The address of a function. FileError if the library cannot be loaded.
  void* symbol(const char* name);

 private:
  const char* file_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

// A function of it, which is called by this object's name.
template <typename Function>
class LateFunction {
 public:
  constexpr LateFunction(LateLibrary& library, const char* name) : library_(library), name_(name) {}
  operator Function*() const {
    void* found = found_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = library_.symbol(name_);
      found_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  LateLibrary& library_;
  const char* name_;
  mutable std::atomic<void*> found_ = nullptr;
};

// A value that a function of it returns, which is read by this object's name.
template <typename Value>
class LateValue {
 public:
  constexpr LateValue(LateLibrary& library, const char* function) : function_(library, function) {}
  operator Value() const { return function_(); }

 private:
  LateFunction<Value()> function_;
};

}  // namespace crema
