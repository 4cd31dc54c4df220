#include "data/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "data/hdf5_handle.h"

namespace crema {
namespace {

Shape extents_of(hid_t data) {
  const Hdf5Handle space(H5Dget_space(data), H5Sclose);
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space)));
  if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return Shape(std::vector<int64_t>(extents.begin(), extents.end()));
}

}  // namespace

bool is_hdf5(const std::string& path) {
  constexpr char kSignature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  char start[8] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(start, sizeof(start)) && std::memcmp(start, kSignature, sizeof(start)) == 0;
}

Hdf5File::Hdf5File(const std::string& path) : path_(path) {
  require(file_exists(path), path, ": no such file");
  const Hdf5Quiet quiet;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  // Locks fail on read-only and network folders, and reading needs none.
  H5Pset_file_locking(access, false, true);
#endif
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  require(file_ >= 0, path, ": is not an HDF5 file, or it is damaged or cut short");
}

Hdf5File::~Hdf5File() {
  const Hdf5Quiet quiet;
  if (file_ >= 0) H5Fclose(file_);
}

bool Hdf5File::has(const std::string& name) const {
  const Hdf5Quiet quiet;
  // The library asks link by link: a missing one on the way is an error to it.
  for (size_t end = name.find('/');; end = name.find('/', end + 1)) {
    if (end != 0 && H5Lexists(file_, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::vector<Hdf5File::Child> Hdf5File::children(const std::string& group) const {
  std::vector<Child> found;
  if (group != "/" && !has(group)) return found;
  const Hdf5Quiet quiet;
  const Hdf5Handle at(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
  require(at >= 0, path_, ": has no group \"", group, "\"");
  H5Literate(
      at, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
        static_cast<std::vector<Child>*>(into)->push_back({name, false});
        return 0;
      },
      &found);
  for (Child& child : found) {
    const Hdf5Handle object(H5Oopen(at, child.name.c_str(), H5P_DEFAULT), H5Oclose);
    child.group = object >= 0 && H5Iget_type(object) == H5I_GROUP;
  }
  return found;
}

int64_t Hdf5File::open(const std::string& name) const {
  if (!has(name)) {
    const size_t slash = name.rfind('/');
    std::vector<std::string> there;
    for (const Child& child : children(slash == std::string::npos ? "/" : name.substr(0, slash)))
      there.push_back(child.name);
    fail(path_, ": has no dataset \"", name, "\"", did_you_mean(name.substr(slash + 1), there),
         "; it has: ", join(there, ", "));
  }
  const hid_t id = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
  require(id >= 0, path_, ": \"", name, "\" is not a dataset");
  return id;
}

int64_t Hdf5File::open_numbers(const std::string& name) const {
  const hid_t data = open(name);
  const Hdf5Handle type(H5Dget_type(data), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT || kind == H5T_INTEGER || kind == H5T_ENUM) return data;
  H5Dclose(data);
  fail(path_, ": dataset \"", name, "\" holds no numbers");
}

Shape Hdf5File::shape(const std::string& name) const {
  const Hdf5Quiet quiet;
  const Hdf5Handle data(open_numbers(name), H5Dclose);
  return extents_of(data);
}

template <typename T>
std::vector<T> Hdf5File::read(const std::string& name, int64_t type) const {
  const Hdf5Quiet quiet;
  const Hdf5Handle data(open_numbers(name), H5Dclose);
  const Shape extents = extents_of(data);
  std::vector<T> values;
  try {
    values.resize(extents.count());
  } catch (const std::exception&) {
    fail(path_, ": dataset \"", name, "\" claims to have ", extents.brief(),
         " numbers: the file is damaged");
  }
  // Nothing to read: the library refuses a null buffer.
  if (values.empty()) return values;
  require(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, path_,
          ": dataset \"", name,
          "\" cannot be read: the file is damaged or cut short, or needs a filter that this HDF5 "
          "library does not have");
  return values;
}

std::vector<float> Hdf5File::floats(const std::string& name) const {
  return read<float>(name, H5T_NATIVE_FLOAT);
}

std::vector<double> Hdf5File::doubles(const std::string& name) const {
  return read<double>(name, H5T_NATIVE_DOUBLE);
}

std::vector<uint64_t> Hdf5File::integers(const std::string& name) const {
  return read<uint64_t>(name, H5T_NATIVE_UINT64);
}

std::string Hdf5File::text(const std::string& name) const {
  const Hdf5Quiet quiet;
  const Hdf5Handle data(open(name), H5Dclose);
  const Hdf5Handle type(H5Dget_type(data), H5Tclose);
  require(H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0, path_, ": dataset \"",
          name, "\" is not a text of fixed length");
  std::string value(H5Tget_size(type), '\0');
  require(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) >= 0, path_,
          ": dataset \"", name, "\" cannot be read: the file is damaged or cut short");
  return value.substr(0, value.find('\0'));
}

double Hdf5File::attribute(const std::string& name, double otherwise) const {
  const Hdf5Quiet quiet;
  const Hdf5Handle at(H5Aopen(file_, name.c_str(), H5P_DEFAULT), H5Aclose);
  double value = otherwise;
  if (at >= 0) H5Aread(at, H5T_NATIVE_DOUBLE, &value);
  return value;
}

std::string Hdf5File::attribute(const std::string& name, const std::string& otherwise) const {
  const Hdf5Quiet quiet;
  const Hdf5Handle at(H5Aopen(file_, name.c_str(), H5P_DEFAULT), H5Aclose);
  const Hdf5Handle type(at >= 0 ? H5Aget_type(at) : -1, H5Tclose);
  if (type < 0 || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    return otherwise;
  std::string value(H5Tget_size(type), '\0');
  return H5Aread(at, type, value.data()) < 0 ? otherwise : value.substr(0, value.find('\0'));
}

}  // namespace crema
