#include "python/net/dlpack.h"

#include <cstring>
#include <memory>
#include <vector>

namespace crema::python {

namespace py = pybind11;

namespace {

// The structures of the standard; other libraries read them from memory.
struct DlTensor {
  void* data;
  int32_t device_kind, device;
  int32_t axes;
  uint8_t type, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* owner;
  void (*free)(DlManagedTensor* self);
};

struct DlOwner {
  DlManagedTensor managed;
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

// A capsule that no library has consumed still has its first name.
void free_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->free(managed);
}

}  // namespace

std::pair<int, int> dlpack_device(const Tensor& tensor, int device) {
  constexpr int kCpu = 1, kCuda = 2;
  return tensor.device() == Device::gpu ? std::pair(kCuda, device) : std::pair(kCpu, 0);
}

py::capsule dlpack_of(const Tensor& tensor, int device) {
  auto owner = std::make_unique<DlOwner>();
  owner->tensor = tensor;
  owner->shape = tensor.shape().dims();
  owner->strides.assign(owner->shape.size(), 1);
  for (int axis = tensor.shape().axes() - 2; axis >= 0; --axis)
    owner->strides[axis] = owner->strides[axis + 1] * owner->shape[axis + 1];
  const auto [kind, ordinal] = dlpack_device(tensor, device);
  constexpr uint8_t kFloat = 2;
  owner->managed.tensor = {tensor.raw(),
                           kind,
                           ordinal,
                           tensor.shape().axes(),
                           kFloat,
                           32,
                           1,
                           owner->shape.data(),
                           owner->strides.data(),
                           0};
  owner->managed.owner = owner.get();
  owner->managed.free = [](DlManagedTensor* self) { delete static_cast<DlOwner*>(self->owner); };
  PyObject* const capsule = PyCapsule_New(&owner->managed, "dltensor", free_capsule);
  if (!capsule) throw py::error_already_set();
  static_cast<void>(owner.release());  // the capsule has it
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace crema::python
