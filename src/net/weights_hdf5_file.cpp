#include "net/weights_hdf5_file.h"

#include <hdf5.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace crema {
namespace {

// An identifier of the library with the function that gives it back.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// The library prints its errors unless told not to; here they become exceptions.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

std::vector<hsize_t> extents_of(const Shape& shape) {
  return std::vector<hsize_t>(shape.dims().begin(), shape.dims().end());
}

}  // namespace

bool is_hdf5(const std::string& path) {
  constexpr char kSignature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  char start[8] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(start, sizeof(start)) && std::memcmp(start, kSignature, sizeof(start)) == 0;
}

// The bytes of a file in memory. The library hands them over when it closes the file.
struct Hdf5Writer::Image {
  void* bytes = nullptr;
  ~Image() { std::free(bytes); }

  static herr_t keep(void* bytes, H5FD_file_image_op_t operation, void* image) {
    if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
      std::swap(static_cast<Image*>(image)->bytes, bytes);
    }
    std::free(bytes);
    return 0;
  }
  H5FD_file_image_callbacks_t callbacks() {
    return {
        [](size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); },
        [](void* to, const void* from, size_t size, H5FD_file_image_op_t, void*) {
          return std::memcpy(to, from, size);
        },
        [](void* old, size_t size, H5FD_file_image_op_t, void*) { return std::realloc(old, size); },
        keep,
        [](void* image) { return image; },
        [](void*) -> herr_t { return 0; },
        this};
  }
};

Hdf5Writer::Hdf5Writer(std::string path)
    : path_(std::move(path)), image_(std::make_unique<Image>()) {
  constexpr size_t kGrowth = 1 << 24;
  const Quiet quiet;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5FD_file_image_callbacks_t callbacks = image_->callbacks();
  H5Pset_fapl_core(access, kGrowth, false);
  H5Pset_file_image_callbacks(access, &callbacks);
  // Under a name that no file has: one that lies there would be read first.
  file_ = H5Fcreate(cat(path_, " in memory").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  require(file_ >= 0, path_, ": the HDF5 library cannot make a file in memory");
}

Hdf5Writer::~Hdf5Writer() {
  const Quiet quiet;
  if (file_ >= 0) H5Fclose(file_);
}

void Hdf5Writer::group(const std::string& name) {
  const Quiet quiet;
  const Handle there(H5Gopen2(file_, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (there >= 0) return;
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Handle made(H5Gcreate2(file_, name.c_str(), links, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  require(made >= 0, path_, ": \"", name,
          "\" cannot be made: its place is taken, or memory is short");
}

void Hdf5Writer::write(const std::string& name, const Shape& shape, int64_t type,
                       const void* values) {
  const Quiet quiet;
  const std::vector<hsize_t> extents = extents_of(shape);
  const Handle space(
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      H5Sclose);
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Handle data(H5Dcreate2(file_, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT),
                    H5Dclose);
  require(data >= 0, path_, ": \"", name,
          "\" cannot be made: its place is taken, or memory is short");
  if (shape.count() == 0) return;
  require(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, path_, ": \"", name,
          "\" cannot be stored: memory "
          "is short");
}

void Hdf5Writer::floats(const std::string& name, const Shape& shape, const float* values) {
  write(name, shape, H5T_NATIVE_FLOAT, values);
}

void Hdf5Writer::doubles(const std::string& name, const Shape& shape, const double* values) {
  write(name, shape, H5T_NATIVE_DOUBLE, values);
}

void Hdf5Writer::integer(const std::string& name, int32_t value) {
  write(name, Shape{1}, H5T_NATIVE_INT32, &value);
}

void Hdf5Writer::integers(const std::string& name, const std::vector<uint64_t>& values) {
  write(name, Shape{static_cast<int64_t>(values.size())}, H5T_NATIVE_UINT64, values.data());
}

void Hdf5Writer::text(const std::string& name, const std::string& value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, value.size() + 1);  // with its closing zero, as Caffe writes it
  write(name, Shape{}, type, value.c_str());
}

void Hdf5Writer::commit() {
  ssize_t size = -1;
  {
    const Quiet quiet;
    const hid_t file = file_;
    file_ = -1;
    if (H5Fflush(file, H5F_SCOPE_LOCAL) >= 0) size = H5Fget_file_image(file, nullptr, 0);
    if (H5Fclose(file) < 0) size = -1;
  }
  require(size > 0 && image_->bytes != nullptr, path_,
          ": the HDF5 library cannot finish the file: memory is short");
  AtomicFile atomic(path_);
  atomic.write(image_->bytes, static_cast<size_t>(size));
  atomic.commit();
}

Hdf5Reader::Hdf5Reader(const std::string& path) : path_(path) {
  require(file_exists(path), path, ": no such file");
  const Quiet quiet;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  // Locks fail on read-only and network folders, and reading needs none.
  H5Pset_file_locking(access, false, true);
#endif
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  require(file_ >= 0, path, ": is not an HDF5 file, or it is damaged or cut short");
}

Hdf5Reader::~Hdf5Reader() {
  const Quiet quiet;
  if (file_ >= 0) H5Fclose(file_);
}

bool Hdf5Reader::has(const std::string& name) const {
  const Quiet quiet;
  // The library asks link by link: a missing one on the way is an error to it.
  for (size_t end = name.find('/');; end = name.find('/', end + 1)) {
    if (end != 0 && H5Lexists(file_, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::vector<Hdf5Reader::Child> Hdf5Reader::children(const std::string& group) const {
  const Quiet quiet;
  const Handle at(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
  require(at >= 0, path_, ": has no group \"", group, "\"");
  std::vector<Child> found;
  H5Literate(
      at, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
        static_cast<std::vector<Child>*>(into)->push_back({name, false});
        return 0;
      },
      &found);
  for (Child& child : found) {
    const Handle object(H5Oopen(at, child.name.c_str(), H5P_DEFAULT), H5Oclose);
    child.group = object >= 0 && H5Iget_type(object) == H5I_GROUP;
  }
  return found;
}

int64_t Hdf5Reader::open(const std::string& name) const {
  require(has(name), path_, ": has no dataset \"", name, "\"");
  const hid_t id = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
  require(id >= 0, path_, ": \"", name, "\" is not a dataset");
  return id;
}

Shape Hdf5Reader::shape(const std::string& name) const {
  const Quiet quiet;
  const Handle data(open(name), H5Dclose);
  const Handle space(H5Dget_space(data), H5Sclose);
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space)));
  if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return Shape(std::vector<int64_t>(extents.begin(), extents.end()));
}

namespace {

template <typename T>
std::vector<T> read_numbers(const std::string& path, const std::string& name, const Shape& shape,
                            hid_t data, hid_t type) {
  const Handle stored(H5Dget_type(data), H5Tclose);
  const H5T_class_t kind = H5Tget_class(stored);
  require(kind == H5T_FLOAT || kind == H5T_INTEGER, path, ": dataset \"", name,
          "\" holds no numbers");
  std::vector<T> values;
  try {
    values.resize(shape.count());
  } catch (const std::exception&) {
    fail(path, ": dataset \"", name, "\" claims to have ", shape.brief(),
         " numbers: the file is damaged");
  }
  if (values.empty()) return values;
  require(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, path,
          ": dataset \"", name, "\" cannot be read: the file is damaged or cut short");
  return values;
}

}  // namespace

std::vector<float> Hdf5Reader::floats(const std::string& name) const {
  const Shape extents = shape(name);
  const Quiet quiet;
  const Handle data(open(name), H5Dclose);
  return read_numbers<float>(path_, name, extents, data, H5T_NATIVE_FLOAT);
}

std::vector<uint64_t> Hdf5Reader::integers(const std::string& name) const {
  const Shape extents = shape(name);
  const Quiet quiet;
  const Handle data(open(name), H5Dclose);
  return read_numbers<uint64_t>(path_, name, extents, data, H5T_NATIVE_UINT64);
}

std::string Hdf5Reader::text(const std::string& name) const {
  const Quiet quiet;
  const Handle data(open(name), H5Dclose);
  const Handle type(H5Dget_type(data), H5Tclose);
  require(H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0, path_, ": dataset \"",
          name, "\" is not a text of fixed length");
  std::string value(H5Tget_size(type), '\0');
  require(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) >= 0, path_,
          ": dataset \"", name, "\" cannot be read: the file is damaged or cut short");
  return value.substr(0, value.find('\0'));
}

}  // namespace crema
