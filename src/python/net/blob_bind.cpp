#include "base/error.h"
#include "python/bindings.h"
#include "python/net/blob_object.h"
#include "python/net/dlpack.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// The four axes of old files: those that a blob has not are 1.
int64_t legacy_extent(BlobObject& blob, int axis) {
  const Shape shape = blob.shape();
  require(shape.axes() <= 4,
          "num, channels, height and width are for blobs of at most 4 axes; this "
          "one has the shape ",
          shape.brief());
  return axis < shape.axes() ? shape[axis] : 1;
}

void reshape_from_python(BlobObject& blob, const py::args& extents) {
  const bool one_sequence = extents.size() == 1 && py::isinstance<py::sequence>(extents[0]);
  blob.reshape(shape_of(one_sequence ? py::handle(extents[0]) : py::handle(extents)));
}

void assign(const py::array& array, const py::object& value) {
  if (value.ptr() != array.ptr()) array[py::ellipsis()] = value;
}

// Row-major float32 on a GPU; otherwise Error.
Tensor on_gpu(BlobObject& blob, bool diff) {
  const Tensor tensor = blob.gpu_tensor(diff);
  require(tensor && tensor.device() == Device::gpu, "the blob is not on a GPU");
  require(tensor.dtype() == DType::f32 &&
              same_layout(tensor.format(), Format::row_major(), tensor.shape()),
          "the blob is not row-major in float32: data and diff copy it");
  return tensor;
}

bool is_on_gpu(BlobObject& blob) {
  const Tensor tensor = blob.gpu_tensor(false);
  return tensor && tensor.device() == Device::gpu && tensor.dtype() == DType::f32 &&
         same_layout(tensor.format(), Format::row_major(), tensor.shape());
}

py::object as_array(BlobObject& blob, const py::object& dtype, const py::object& copy) {
  py::object array = blob.data();
  if (!dtype.is_none()) array = array.attr("astype")(dtype, py::arg("copy") = false);
  const int copies = copy.is_none() ? 0 : PyObject_IsTrue(copy.ptr());
  if (copies < 0) throw py::error_already_set();
  if (copies) array = array.attr("copy")();
  return array;
}

py::object blob_as_dlpack(BlobObject& blob, const py::object&) {
  if (is_on_gpu(blob)) return dlpack_of(on_gpu(blob, false), blob.gpu_ordinal());
  return blob.data().attr("__dlpack__")();
}

py::tuple blob_dlpack_device(BlobObject& blob) {
  if (!is_on_gpu(blob)) return py::make_tuple(1, 0);
  const auto [kind, ordinal] = dlpack_device(on_gpu(blob, false), blob.gpu_ordinal());
  return py::make_tuple(kind, ordinal);
}

std::string blob_text(BlobObject& blob) {
  const std::string name = blob.name();
  const std::string shape = py::str(tuple_of(blob.shape())).cast<std::string>();
  return cat("<Blob ", name.empty() ? "" : cat("\"", name, "\" "), shape, ">");
}

// A kind of list, for scripts that name the types of Boost's vectors.
void add_list_type(const py::module_& module, const char* name, const char* doc) {
  const py::module_ builtins = py::module_::import("builtins");
  py::dict members;
  members["__doc__"] = doc;
  members["__module__"] = module.attr("__name__");
  members["__slots__"] = py::tuple();
  module.attr(name) = builtins.attr("type")(name, py::make_tuple(builtins.attr("list")), members);
}

}  // namespace

void bind_blob(py::module_& module) {
  add_list_type(module, "BlobVec", "The parameters of a layer: a list of Blob.");
  add_list_type(module, "RawBlobVec", "The bottoms or tops of a layer: a list of Blob.");
  py::class_<BlobObject, std::shared_ptr<BlobObject>>(
      module, "Blob", py::dynamic_attr(),
      "An array of a net, or one of its own: values (data) and their gradient (diff).")
      .def(py::init([](const py::object& shape) -> std::shared_ptr<BlobObject> {
             return std::make_shared<LoneBlob>(shape_of(shape));
           }),
           py::arg("shape"), "A blob of this shape, filled with zeros.")
      .def_property(
          "data", &BlobObject::data,
          [](BlobObject& blob, const py::object& value) { assign(blob.data(), value); },
          "The values, a float32 array. On a CPU it is the net's own memory; otherwise a "
          "copy, which is written back before the next pass if it was changed.")
      .def_property(
          "diff", &BlobObject::diff,
          [](BlobObject& blob, const py::object& value) { assign(blob.diff(), value); },
          "The gradient, an array like data; zeros where the net computes none.")
      .def_property_readonly(
          "shape", [](BlobObject& blob) { return tuple_of(blob.shape()); },
          "The extents, a tuple; the slowest axis first.")
      .def_property_readonly(
          "count", [](BlobObject& blob) { return blob.shape().count(); }, "The number of values.")
      .def_property_readonly("name", &BlobObject::name, "Its name in the net, or \"\".")
      .def_property_readonly(
          "num", [](BlobObject& blob) { return legacy_extent(blob, 0); },
          "The first of four extents.")
      .def_property_readonly(
          "channels", [](BlobObject& blob) { return legacy_extent(blob, 1); },
          "The second of four extents.")
      .def_property_readonly(
          "height", [](BlobObject& blob) { return legacy_extent(blob, 2); },
          "The third of four extents.")
      .def_property_readonly(
          "width", [](BlobObject& blob) { return legacy_extent(blob, 3); },
          "The last of four extents.")
      .def("reshape", &reshape_from_python,
           "Gives the blob other extents: reshape(n, c, h, w). Of a net only inputs can be "
           "reshaped; "
           "the other blobs follow with Net.reshape() or the next forward(). Values stay in place, "
           "in "
           "row-major order.")
      .def("__array__", &as_array, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack__", &blob_as_dlpack, py::arg("stream") = py::none(),
           "The values for another library, without a copy: torch.from_dlpack(blob).")
      .def("__dlpack_device__", &blob_dlpack_device)
      .def_property_readonly(
          "_gpu_data_ptr",
          [](BlobObject& blob) { return reinterpret_cast<uintptr_t>(on_gpu(blob, false).raw()); })
      .def_property_readonly(
          "_gpu_diff_ptr",
          [](BlobObject& blob) { return reinterpret_cast<uintptr_t>(on_gpu(blob, true).raw()); })
      .def("__repr__", &blob_text);
}

}  // namespace crema::python
