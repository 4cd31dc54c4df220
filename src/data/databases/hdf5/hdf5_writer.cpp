#include "data/databases/hdf5/hdf5_writer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5/hdf5_handle.h"

namespace crema {

Hdf5Turn hdf5_turn() {
  static std::recursive_mutex mutex;
  return Hdf5Turn(mutex);
}

namespace {

// Creation properties for objects of this class: no timestamps, so that equal content gives equal
// bytes.
Hdf5Handle made_without_time(hid_t of_class) {
  const hid_t made = H5Pcreate(of_class);
  H5Pset_obj_track_times(made, false);
  return {made, H5Pclose};
}

}  // namespace

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
    : turn_(hdf5_turn()), path_(std::move(path)), image_(std::make_unique<Image>()) {
  constexpr size_t kGrowth = 1 << 24;
  const Hdf5Quiet quiet;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5FD_file_image_callbacks_t callbacks = image_->callbacks();
  H5Pset_fapl_core(access, kGrowth, false);
  H5Pset_file_image_callbacks(access, &callbacks);
  // Under a name that no file has, because an existing one would be read first.
  file_ = H5Fcreate(cat(path_, " in memory").c_str(), H5F_ACC_TRUNC,
                    made_without_time(H5P_FILE_CREATE), access);
  require(file_ >= 0, path_, ": the HDF5 library cannot make a file in memory");
}

Hdf5Writer::~Hdf5Writer() {
  if (file_ < 0) return;
  const Hdf5Quiet quiet;
  H5Fclose(file_);
}

void Hdf5Writer::group(const std::string& name) {
  const Hdf5Quiet quiet;
  const Hdf5Handle there(H5Gopen2(file_, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (there >= 0) return;
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Hdf5Handle made(
      H5Gcreate2(file_, name.c_str(), links, made_without_time(H5P_GROUP_CREATE), H5P_DEFAULT),
      H5Gclose);
  require(made >= 0, path_, ": \"", name,
          "\" cannot be made: its name is taken, or memory is short");
}

void Hdf5Writer::write(const std::string& name, const Shape& shape, int64_t type,
                       const void* values) {
  write(name, shape, type, made_without_time(H5P_DATASET_CREATE), values);
}

void Hdf5Writer::write(const std::string& name, const Shape& shape, int64_t type,
                       int64_t properties, const void* values) {
  const Hdf5Quiet quiet;
  const std::vector<hsize_t> extents(shape.dims().begin(), shape.dims().end());
  const Hdf5Handle space(
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      H5Sclose);
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Hdf5Handle data(
      H5Dcreate2(file_, name.c_str(), type, space, links, properties, H5P_DEFAULT), H5Dclose);
  require(data >= 0, path_, ": \"", name,
          "\" cannot be made: its name is taken, or memory is short");
  if (shape.count() == 0) return;
  require(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, path_, ": \"", name,
          "\" cannot be stored: memory is short");
}

void Hdf5Writer::floats(const std::string& name, const Shape& shape, const float* values) {
  write(name, shape, H5T_NATIVE_FLOAT, values);
}

void Hdf5Writer::chunked_floats(const std::string& name, const Shape& shape, int compression,
                                const float* values) {
  constexpr int64_t kChunk = 1 << 18;  // values: 1 MiB
  std::vector<hsize_t> chunk(shape.dims().begin(), shape.dims().end());
  const int64_t row = std::max<int64_t>(1, shape.count(1));
  chunk[0] =
      static_cast<hsize_t>(std::clamp<int64_t>(kChunk / row, 1, std::max<int64_t>(1, shape[0])));
  const Hdf5Handle properties = made_without_time(H5P_DATASET_CREATE);
  H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
  if (compression > 0) {
    require(H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0, path_,
            ": this HDF5 library cannot compress; write the file without compression");
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, static_cast<unsigned>(compression));
  }
  write(name, shape, H5T_NATIVE_FLOAT, properties, values);
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
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, value.size() + 1);  // with its closing zero, as Caffe writes it
  write(name, Shape{}, type, value.c_str());
}

void Hdf5Writer::commit() {
  ssize_t size = -1;
  {
    const Hdf5Quiet quiet;
    const hid_t file = file_;
    file_ = -1;
    if (H5Fflush(file, H5F_SCOPE_LOCAL) >= 0) size = H5Fget_file_image(file, nullptr, 0);
    if (H5Fclose(file) < 0) size = -1;
  }
  turn_.unlock();  // the disk may be slow
  require(size > 0 && image_->bytes != nullptr, path_,
          ": the HDF5 library cannot finish the file: memory is short");
  AtomicFile atomic(path_);
  atomic.write(image_->bytes, static_cast<size_t>(size));
  atomic.commit();
}

}  // namespace crema
