#include "data/hdf5_file.h"

#include <hdf5.h>

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

// Errors become exceptions here; the library's own printing of them is off meanwhile.
template <typename Call>
auto quietly(const Call& call) {
  H5E_auto2_t print;
  void* data;
  H5Eget_auto2(H5E_DEFAULT, &print, &data);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto result = call();
  H5Eset_auto2(H5E_DEFAULT, print, data);
  return result;
}

}  // namespace

Hdf5File::Hdf5File(const std::string& path) : path_(path) {
  require(file_exists(path), path, ": no such file");
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  // Locks fail on read-only and network folders, and reading needs none.
  H5Pset_file_locking(access, false, true);
#endif
  file_ = quietly([&] { return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access); });
  require(file_ >= 0, path, ": is not an HDF5 file, or it is damaged");
}

Hdf5File::Hdf5File(Hdf5File&& other) noexcept : path_(std::move(other.path_)), file_(other.file_) {
  other.file_ = -1;
}

Hdf5File::~Hdf5File() {
  if (file_ >= 0) H5Fclose(file_);
}

bool Hdf5File::has(const std::string& dataset) const {
  return quietly([&] { return H5Lexists(file_, dataset.c_str(), H5P_DEFAULT); }) > 0;
}

std::vector<std::string> Hdf5File::names() const {
  std::vector<std::string> found;
  H5Literate(
      file_, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
        static_cast<std::vector<std::string>*>(into)->push_back(name);
        return 0;
      },
      &found);
  return found;
}

int64_t Hdf5File::open(const std::string& dataset) const {
  if (!has(dataset)) {
    const std::vector<std::string> there = names();
    fail(path_, ": has no dataset \"", dataset, "\"", did_you_mean(dataset, there),
         "; it has: ", join(there, ", "));
  }
  const hid_t id = quietly([&] { return H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT); });
  require(id >= 0, path_, ": \"", dataset, "\" is not a dataset");
  return id;
}

Shape Hdf5File::shape(const std::string& dataset) const {
  const Handle data(open(dataset), H5Dclose);
  const Handle type(H5Dget_type(data), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  require(kind == H5T_FLOAT || kind == H5T_INTEGER || kind == H5T_ENUM, path_, ": dataset \"",
          dataset, "\" holds no numbers");
  const Handle space(H5Dget_space(data), H5Sclose);
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space)));
  if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return Shape(std::vector<int64_t>(extents.begin(), extents.end()));
}

std::vector<float> Hdf5File::read(const std::string& dataset) const {
  std::vector<float> values(shape(dataset).count());
  const Handle data(open(dataset), H5Dclose);
  // Nothing to read: the library refuses a null buffer.
  if (values.empty()) return values;
  const herr_t status = quietly([&] {
    return H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  });
  require(status >= 0, path_, ": dataset \"", dataset,
          "\" cannot be read: the file is damaged, or needs a filter that this "
          "HDF5 library does not have");
  return values;
}

}  // namespace crema
