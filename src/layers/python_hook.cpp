#include "layers/python_hook.h"

#include <mutex>

namespace crema {
namespace {

struct Hook {
  std::mutex mutex;
  PythonMaker maker = nullptr;
  void (*starter)() = nullptr;
};

Hook& hook() {
  static Hook instance;
  return instance;
}

}  // namespace

void HostBlob::reshape(const Shape& shape) {
  for (Tensor* memory : {&data_, &diff_}) {
    if (*memory && memory->count() < shape.count()) *memory = {};
  }
  shape_ = shape;
}

Tensor HostBlob::filled(Tensor& memory) {
  if (!memory) memory = Tensor(*host_, shape_, DType::f32);
  if (memory.shape() == shape_) return memory;
  if (!memory.memory()) return Tensor::wrap(memory.raw(), shape_, DType::f32);
  const auto* const start = static_cast<const char*>(memory.memory()->data());
  const auto offset = static_cast<const char*>(memory.raw()) - start;
  return Tensor(memory.memory(), static_cast<size_t>(offset), shape_, DType::f32);
}

void set_python_maker(PythonMaker maker) {
  const std::scoped_lock lock(hook().mutex);
  hook().maker = maker;
}

bool has_python_maker() {
  const std::scoped_lock lock(hook().mutex);
  return hook().maker != nullptr;
}

void set_python_starter(void (*starter)()) {
  const std::scoped_lock lock(hook().mutex);
  hook().starter = starter;
}

PythonMaker python_maker() {
  void (*starter)() = nullptr;
  {
    const std::scoped_lock lock(hook().mutex);
    if (hook().maker) return hook().maker;
    starter = hook().starter;
  }
  // Not under the mutex, which importing the module needs too.
  if (starter) starter();
  const std::scoped_lock lock(hook().mutex);
  return hook().maker;
}

}  // namespace crema
