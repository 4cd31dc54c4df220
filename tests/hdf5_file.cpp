#include "hdf5_file.h"

#include "base/error.h"

namespace crema::tests {

Hdf5File::Hdf5File(const std::string& path)
    : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
  require(file_ >= 0, path, ": cannot be opened as HDF5");
}

Hdf5File::~Hdf5File() { H5Fclose(file_); }

bool Hdf5File::has(const std::string& path) const {
  std::string so_far;
  for (const std::string& part : split(path, '/')) {
    so_far += (so_far.empty() ? "" : "/") + part;
    if (H5Lexists(file_, so_far.c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return true;
}

std::vector<std::string> Hdf5File::children(const std::string& group) const {
  std::vector<std::string> names;
  if (!group.empty() && !has(group)) return names;
  const hid_t id = H5Gopen2(file_, group.empty() ? "/" : group.c_str(), H5P_DEFAULT);
  H5Literate(
      id, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->push_back(name);
        return 0;
      },
      &names);
  H5Gclose(id);
  return names;
}

Hdf5Array Hdf5File::read(const std::string& path) const {
  const hid_t set = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
  require(set >= 0, "no dataset ", path);
  const hid_t space = H5Dget_space(set);
  std::vector<hsize_t> dims(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  Hdf5Array array;
  for (hsize_t extent : dims) array.shape.push_back(static_cast<int64_t>(extent));
  array.values.resize(static_cast<size_t>(array.shape.count()));
  const herr_t status =
      H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data());
  H5Sclose(space);
  H5Dclose(set);
  require(status >= 0, "cannot read dataset ", path);
  return array;
}

double Hdf5File::number(const std::string& attribute, double otherwise) const {
  if (H5Aexists(file_, attribute.c_str()) <= 0) return otherwise;
  const hid_t id = H5Aopen(file_, attribute.c_str(), H5P_DEFAULT);
  double value = otherwise;
  H5Aread(id, H5T_NATIVE_DOUBLE, &value);
  H5Aclose(id);
  return value;
}

std::string Hdf5File::text(const std::string& attribute) const {
  if (H5Aexists(file_, attribute.c_str()) <= 0) return "";
  const hid_t id = H5Aopen(file_, attribute.c_str(), H5P_DEFAULT);
  const hid_t type = H5Aget_type(id);
  std::string value(H5Tget_size(type), '\0');
  H5Aread(id, type, value.data());
  H5Tclose(type);
  H5Aclose(id);
  return value.c_str();
}

}  // namespace crema::tests
