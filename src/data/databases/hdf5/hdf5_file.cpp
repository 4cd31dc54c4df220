#include "data/databases/hdf5/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/files.h"
#include "base/random_access_file.h"
#include "data/databases/hdf5/hdf5_handle.h"
#include "data/databases/hdf5/hdf5_structure.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

// Maximum expansion by deflate: a byte becomes at most 1032. Filters that can exceed it do so only
// with data that contains almost no information.
constexpr uint64_t kMaxExpansion = 1032;
// Values that were never written are not stored; reading gives the fill value for them. Only so
// many bytes are returned that way.
constexpr uint64_t kMaxFilledIn = 64 << 20;
// Bytes of a number: a long double is the longest.
constexpr size_t kLongestNumber = 16;

const char* name_of(H5T_class_t kind) {
  switch (kind) {
    case H5T_FLOAT:
    case H5T_INTEGER:
    case H5T_ENUM:
      return "numbers";
    case H5T_STRING:
      return "texts";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_VLEN:
      return "lists of variable length";
    case H5T_ARRAY:
      return "arrays";
    default:
      return "values of another kind";
  }
}

Hdf5File::Child child_of(hid_t object, const std::string& name) {
  Hdf5File::Child child{name, H5Iget_type(object) == H5I_GROUP, 0};
  H5O_info_t info;
#if H5_VERSION_GE(1, 12, 0)
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0)
    std::memcpy(&child.identity, &info.token, sizeof(child.identity));
#else
  if (H5Oget_info(object, &info) >= 0) child.identity = info.addr;
#endif
  return child;
}

}  // namespace

// An open dataset or attribute.
struct Hdf5File::Values {
  Hdf5Handle id, type, space;
  bool attribute;

  static Values of_dataset(hid_t id) {
    return {{id, H5Dclose}, {H5Dget_type(id), H5Tclose}, {H5Dget_space(id), H5Sclose}, false};
  }
  static Values of_attribute(hid_t id) {
    return {{id, H5Aclose}, {H5Aget_type(id), H5Tclose}, {H5Aget_space(id), H5Sclose}, true};
  }
};

bool is_hdf5(const std::string& path) {
  constexpr char kSignature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  char start[8] = {};
  require_regular(path);
  std::ifstream file(path, std::ios::binary);
  return file.read(start, sizeof(start)) && std::memcmp(start, kSignature, sizeof(start)) == 0;
}

Hdf5File::Hdf5File(const std::string& path) : path_(path) {
  require(file_exists(path), path, ": no such file");
  size_ = RandomAccessFile(path).size();
  if (!is_hdf5(path)) {  // which may also begin with a user block
    const FileKind kind = file_kind(path);
    if (!kind.what.empty() && kind.what != kUnknownKind)
      fail(path, ": is not an HDF5 file, or it is damaged or cut short", what_it_is(kind));
  }
  check_hdf5_structure(path);
  const Hdf5Quiet quiet;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  // Locking fails on read-only and network folders, and reading does not need it.
  H5Pset_file_locking(access, false, true);
#endif
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  require(file_ >= 0, path_, ": is not an HDF5 file, or it is damaged or cut short");
  links_ = H5Pcreate(H5P_LINK_ACCESS);
  H5Pset_elink_cb(
      links_,
      [](const char*, const char*, const char*, const char*, unsigned*, hid_t,
         void* led_out) -> herr_t {
        *static_cast<bool*>(led_out) = true;
        return -1;
      },
      &led_out_);
}

Hdf5File::~Hdf5File() {
  const Hdf5Quiet quiet;
  if (links_ >= 0) H5Pclose(links_);
  if (file_ >= 0) H5Fclose(file_);
}

void Hdf5File::leads_out(const std::string& name) const {
  led_out_ = false;
  fail(path_, ": \"", name,
       "\" is a link into another file, which is not followed: copy what it leads to into this "
       "file");
}

bool Hdf5File::has(const std::string& name) const {
  const Hdf5Quiet quiet;
  // Asks the library link by link, because a missing link on the way is an error for it.
  for (size_t end = name.find('/');; end = name.find('/', end + 1)) {
    const bool there = end == 0 || H5Lexists(file_, name.substr(0, end).c_str(), links_) > 0;
    if (led_out_) leads_out(name);
    if (!there) return false;
    if (end == std::string::npos) return true;
  }
}

// Opens a group or a dataset; negative when there is none.
int64_t Hdf5File::object(const std::string& name) const {
  const hid_t id = H5Oopen(file_, name.c_str(), links_);
  if (id < 0 && led_out_) leads_out(name);
  return id;
}

std::vector<Hdf5File::Child> Hdf5File::children(const std::string& group) const {
  std::vector<Child> found;
  if (group != "/" && !has(group)) return found;
  const Hdf5Quiet quiet;
  const Hdf5Handle at(object(group), H5Oclose);
  require(at >= 0 && H5Iget_type(at) == H5I_GROUP, path_, ": has no group \"", group, "\"");
  std::vector<std::string> names;
  H5Literate(
      at, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
        static_cast<std::vector<std::string>*>(into)->push_back(name);
        return 0;
      },
      &names);
  for (const std::string& name : names) {
    const Hdf5Handle inside(object(cat(group, "/", name)), H5Oclose);
    found.push_back(inside < 0 ? Child{name} : child_of(inside, name));
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
  const hid_t id = object(name);
  if (id >= 0 && H5Iget_type(id) == H5I_DATASET) return id;
  if (id >= 0) H5Oclose(id);
  fail(path_, ": \"", name, "\" is not a dataset");
}

// Upper bound of the bytes of values that the file can have for a dataset.
uint64_t Hdf5File::stored_bytes(const Values& values, const std::string& what) const {
  // An attribute is stored in the file's own structures.
  if (values.attribute) return size_;
  const Hdf5Handle made(H5Dget_create_plist(values.id), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(made);
  require(layout >= 0 && layout != H5D_VIRTUAL && H5Pget_external_count(made) == 0, path_, ": ",
          what, " keeps its values in other files, which are not read: copy them into this file");
  const uint64_t stored = std::min<uint64_t>(H5Dget_storage_size(values.id), size_);
  return H5Pget_nfilters(made) > 0 ? stored * kMaxExpansion : stored;
}

// Every reader checks this before reading a byte: is the type as expected, and can the file contain
// so many values? Otherwise the library would write beyond its buffer, or request more memory than
// there is.
Shape Hdf5File::checked(const Values& values, const std::string& what, Holds holds) const {
  const H5T_class_t kind = H5Tget_class(values.type);
  const size_t size = H5Tget_size(values.type);
  const H5S_class_t extent = H5Sget_simple_extent_type(values.space);
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(values.space)));
  require(size > 0 && (extent == H5S_SCALAR || extent == H5S_SIMPLE), path_, ": ", what,
          " has no values");
  if (!extents.empty()) H5Sget_simple_extent_dims(values.space, extents.data(), nullptr);

  for (hsize_t& axis : extents) axis = std::min<hsize_t>(axis, INT64_MAX);
  const Shape shape(std::vector<int64_t>(extents.begin(), extents.end()));
  if (holds == Holds::numbers) {
    if (std::strcmp(name_of(kind), "numbers") != 0)
      fail(path_, ": ", what, " holds no numbers, but ", name_of(kind));
    require(size <= kLongestNumber, path_, ": ", what, " holds numbers of ", size, " bytes");
  } else {
    if (kind != H5T_STRING || H5Tis_variable_str(values.type) != 0)
      fail(path_, ": ", what, " is not a text of fixed length, but holds ",
           kind == H5T_STRING ? "texts of variable length" : name_of(kind));
    require(shape == Shape() || shape == Shape{1}, path_, ": ", what, " is ", shape.brief(),
            " texts; it should be one");
  }
  const int64_t maximum = static_cast<int64_t>((stored_bytes(values, what) + kMaxFilledIn) / size);
  // The library allocates memory for whole chunks.
  if (!at_most(shape, maximum) || !at_most(chunk_of(values), maximum)) {
    fail(path_, ": ", what, " claims to have ", shape.brief(), " values of ", size,
         " bytes, but the file has ", size_, " bytes: it is damaged");
  }
  return shape;
}

// The extents of a chunk; a scalar for datasets that are not chunked.
Shape Hdf5File::chunk_of(const Values& values) const {
  if (values.attribute) return {};
  const Hdf5Handle made(H5Dget_create_plist(values.id), H5Pclose);
  if (H5Pget_layout(made) != H5D_CHUNKED) return {};
  hsize_t extents[H5S_MAX_RANK];
  const int axes = H5Pget_chunk(made, H5S_MAX_RANK, extents);
  for (int axis = 0; axis < axes; ++axis)
    extents[axis] = std::min<hsize_t>(extents[axis], INT64_MAX);
  return Shape(std::vector<int64_t>(extents, extents + std::max(0, axes)));
}

Shape Hdf5File::shape(const std::string& name) const {
  const Hdf5Quiet quiet;
  return checked(Values::of_dataset(open(name)), cat("dataset \"", name, "\""), Holds::numbers);
}

bool Hdf5File::wide_integers(const std::string& name) const {
  const Hdf5Quiet quiet;
  const Values values = Values::of_dataset(open(name));
  return H5Tget_class(values.type) == H5T_INTEGER && H5Tget_precision(values.type) > 24;
}

template <typename T>
std::vector<T> Hdf5File::read(const std::string& name, int64_t type) const {
  const Hdf5Quiet quiet;
  const std::string what = cat("dataset \"", name, "\"");
  const Values data = Values::of_dataset(open(name));
  const Shape shape = checked(data, what, Holds::numbers);
  const uint64_t bytes = shape.count() * H5Tget_size(data.type), stored = stored_bytes(data, what);
  filled_in_ += bytes - std::min(bytes, stored);
  require(filled_in_ <= kMaxFilledIn, path_, ": ", what, " has ", shape.brief(),
          " numbers most of which were never written: the file is damaged");
  std::vector<T> values;
  try {
    values.resize(shape.count());
  } catch (const std::exception&) {
    fail(path_, ": ", what, " has ", shape.brief(), " numbers: memory is short");
  }
  // Nothing to read: the library rejects a null buffer.
  if (values.empty()) return values;
  read_into(data, what, type, H5S_ALL, H5S_ALL, values.data());
  return values;
}

void Hdf5File::read_into(const Values& values, const std::string& what, int64_t type,
                         int64_t memory, int64_t space, void* into) const {
  require(H5Dread(values.id, type, memory, space, H5P_DEFAULT, into) >= 0, path_, ": ", what,
          " cannot be read: the file is damaged or cut short, or needs a filter that this HDF5 "
          "library does not have");
}

void Hdf5File::read_rows(const std::string& name, int64_t first, int64_t count, int64_t type,
                         void* into) const {
  const std::string what = cat("dataset \"", name, "\"");
  const Values data = Values::of_dataset(open(name));
  const Shape shape = checked(data, what, Holds::numbers);
  require(shape.axes() > 0 && first >= 0 && count >= 0 && first + count <= shape[0], path_, ": ",
          what, " is ", shape.brief(), ": it does not have the ", count, " rows from ", first,
          " on");
  std::vector<hsize_t> begin(static_cast<size_t>(shape.axes())),
      extents(shape.dims().begin(), shape.dims().end());
  begin[0] = static_cast<hsize_t>(first);
  extents[0] = static_cast<hsize_t>(count);
  if (std::count(extents.begin(), extents.end(), 0) > 0) return;
  const Hdf5Handle memory(H5Screate_simple(shape.axes(), extents.data(), nullptr), H5Sclose);
  H5Sselect_hyperslab(data.space, H5S_SELECT_SET, begin.data(), nullptr, extents.data(), nullptr);
  read_into(data, what, type, memory, data.space, into);
}

std::vector<float> Hdf5File::floats(const std::string& name) const {
  return read<float>(name, H5T_NATIVE_FLOAT);
}

std::vector<double> Hdf5File::doubles(const std::string& name) const {
  return read<double>(name, H5T_NATIVE_DOUBLE);
}

void Hdf5File::floats(const std::string& name, int64_t first, int64_t count, float* into) const {
  const Hdf5Quiet quiet;
  read_rows(name, first, count, H5T_NATIVE_FLOAT, into);
}

std::vector<double> Hdf5File::doubles(const std::string& name, int64_t first, int64_t count) const {
  const Hdf5Quiet quiet;
  std::vector<double> values(static_cast<size_t>(count * shape(name).count(1)));
  read_rows(name, first, count, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

int64_t Hdf5File::rows_in_chunk(const std::string& name) const {
  const Hdf5Quiet quiet;
  const Shape chunk = chunk_of(Values::of_dataset(open(name)));
  return chunk.axes() > 0 ? chunk[0] : 0;
}

std::vector<uint64_t> Hdf5File::integers(const std::string& name) const {
  return read<uint64_t>(name, H5T_NATIVE_UINT64);
}

template <typename T>
T Hdf5File::one(const std::string& name, const std::vector<T>& values) const {
  require(values.size() == 1, path_, ": dataset \"", name, "\" has ", values.size(),
          " numbers; it should be one");
  return values[0];
}

float Hdf5File::real(const std::string& name) const { return one(name, floats(name)); }

uint64_t Hdf5File::integer(const std::string& name) const { return one(name, integers(name)); }

std::string Hdf5File::text(const std::string& name) const {
  const Hdf5Quiet quiet;
  const std::string what = cat("dataset \"", name, "\"");
  const Values data = Values::of_dataset(open(name));
  checked(data, what, Holds::text);
  std::string value(H5Tget_size(data.type), '\0');
  require(H5Dread(data.id, data.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) >= 0, path_,
          ": ", what, " cannot be read: the file is damaged or cut short");
  return value.substr(0, value.find('\0'));
}

double Hdf5File::attribute(const std::string& name, double otherwise) const {
  const Hdf5Quiet quiet;
  if (H5Aexists(file_, name.c_str()) <= 0) return otherwise;
  const std::string what = cat("attribute \"", name, "\"");
  const Values at = Values::of_attribute(H5Aopen(file_, name.c_str(), H5P_DEFAULT));
  const Shape shape = checked(at, what, Holds::numbers);
  require(shape.count() == 1, path_, ": ", what, " is ", shape.brief(),
          " numbers; it should be one");
  double value = 0;
  require(H5Aread(at.id, H5T_NATIVE_DOUBLE, &value) >= 0, path_, ": ", what,
          " cannot be read: the file is damaged or cut short");
  return value;
}

std::string Hdf5File::attribute(const std::string& name, const std::string& otherwise) const {
  const Hdf5Quiet quiet;
  if (H5Aexists(file_, name.c_str()) <= 0) return otherwise;
  const std::string what = cat("attribute \"", name, "\"");
  const Values at = Values::of_attribute(H5Aopen(file_, name.c_str(), H5P_DEFAULT));
  checked(at, what, Holds::text);
  std::string value(H5Tget_size(at.type), '\0');
  require(H5Aread(at.id, at.type, value.data()) >= 0, path_, ": ", what,
          " cannot be read: the file is damaged or cut short");
  return value.substr(0, value.find('\0'));
}

}  // namespace crema
