#include "layers/python_hook.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/strings.h"

namespace crema {
namespace {

struct Hook {
  std::mutex mutex;
  PythonMaker maker = nullptr;
  PythonFinder finder = nullptr;
  void (*starter)() = nullptr;
};

Hook& hook() {
  static Hook instance;
  return instance;
}

std::string find_in_folders(const std::string& module, const std::string& folder) {
  const char* const path = std::getenv("PYTHONPATH");
  std::vector<std::string> folders = split(path ? path : "", ':');
  folders.insert(folders.end(), {".", folder});
  std::string name = module;
  std::replace(name.begin(), name.end(), '.', '/');
  for (const std::string& one : folders) {
    if (one.empty()) continue;
    for (const char* const end : {".py", "/__init__.py"}) {
      const std::filesystem::path file = std::filesystem::path(one) / (name + end);
      std::error_code ignored;
      if (std::filesystem::is_regular_file(file, ignored)) return file.lexically_normal();
    }
  }
  return "";
}

}  // namespace

Shape HostBlob::shape() const {
  const std::scoped_lock lock(mutex_);
  return shape_;
}

void HostBlob::fix_shape() {
  const std::scoped_lock lock(mutex_);
  fixed_ = true;
}

bool HostBlob::has(const Tensor& memory) const {
  const std::scoped_lock lock(mutex_);
  return static_cast<bool>(memory);
}

void HostBlob::view(Tensor& memory, Tensor other) {
  const std::scoped_lock lock(mutex_);
  memory = std::move(other);
}

void HostBlob::reshape(const Shape& shape) {
  const std::scoped_lock lock(mutex_);
  require(!fixed_ || shape == shape_, "this parameter has the shape ", shape_.brief(),
          " that setup() gave it: it cannot become ", shape.brief());
  for (Tensor* memory : {&data_, &diff_}) {
    if (*memory && memory->count() < shape.count()) *memory = {};
  }
  shape_ = shape;
}

Tensor HostBlob::filled(Tensor& memory) {
  const std::scoped_lock lock(mutex_);
  // Python code may have reshaped a blob that shows a net's memory.
  if (!memory || memory.count() < shape_.count()) memory = Tensor(*host_, shape_, DType::f32);
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

void set_python_finder(PythonFinder finder) {
  const std::scoped_lock lock(hook().mutex);
  hook().finder = finder;
}

std::string find_python_module(const std::string& module, const std::string& folder) {
  PythonFinder finder = nullptr;
  {
    const std::scoped_lock lock(hook().mutex);
    finder = hook().finder;
  }
  return finder ? finder(module, folder) : find_in_folders(module, folder);
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
