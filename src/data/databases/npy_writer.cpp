#include "data/databases/npy_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/strings.h"
#include "base/temporary.h"

namespace crema {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as '<f4'");

const std::string kNpyMagic("\x93NUMPY\1\0", 8);  // and the version

bool is_npy(const std::string& path) {
  std::string begin(6, '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), 6);
  return begin == kNpyMagic.substr(0, 6);
}

void require_free_npy(const std::string& path, bool overwrite) {
  if (!file_exists(path)) return;
  require(overwrite, path, ": exists already; remove it, or choose another name");
  require(!folder_exists(path) && is_npy(path), path,
          ": is no NumPy file, so it is not replaced; remove it, or choose another name");
}

// Replaces the first bytes of a file, and brings all of it to the disk. False, with errno: it cannot.
bool rewrite_begin(const std::string& file, const std::string& bytes) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool good =
      pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      fsync(descriptor) == 0;
  const int problem = errno;
  close(descriptor);
  errno = problem;
  return good;
}

}  // namespace

std::string name_of_npy(const std::string& path) {
  return ends_with(path, ".npy") ? path : path + ".npy";
}

NpyWriter::NpyWriter(const std::string& path, bool overwrite)
    : path_(name_of_npy(path)), overwrite_(overwrite) {
  require(!path.empty(), "the path of a NumPy file is empty");
  require_free_npy(path_, overwrite_);
  file_ = std::make_unique<AtomicFile>(path_);
}

// As long for any number of rows, as it is written before that is known.
std::string NpyWriter::header(int64_t rows) const {
  const auto text = [&](int64_t first) {
    std::string extents = cat(first, ",");
    for (int axis = 1; axis < shape_.axes(); ++axis)
      extents += cat(axis > 1 ? ", " : " ", shape_[axis]);
    return cat("{'descr': '<f4', 'fortran_order': False, 'shape': (", extents, "), }");
  };
  constexpr size_t kAlignment = 64;
  const size_t before = kNpyMagic.size() + 2,  // of the length
      size = (before + text(INT64_MAX).size() + kAlignment) / kAlignment * kAlignment,
               length = size - before;
  std::string words = text(rows);
  words.resize(length - 1, ' ');
  return kNpyMagic + static_cast<char>(length % 256) + static_cast<char>(length / 256) + words +
         "\n";
}

void NpyWriter::put(const Shape& shape, const float* values) {
  if (shape_.axes() == 0) {
    shape_ = shape;
    const std::string reserved = header(0);
    file_->write(reserved.data(), reserved.size());
  }
  Shape expected = shape_;
  expected[0] = shape[0];
  require(shape == expected, path_, ": the rows are ", shape.brief(), ", but the first ones were ",
          shape_.brief(), "; all must have one shape");
  file_->write(values, static_cast<size_t>(shape.count()) * sizeof(float));
  rows_ += shape[0];
}

void NpyWriter::complete() {
  if (complete_) return;
  require(shape_.axes() > 0, path_, ": there are no rows to write");
  if (!rewrite_begin(file_->temporary_path(), header(rows_)))
    fail(path_, ": cannot write: ", std::strerror(errno));
  complete_ = true;
}

void NpyWriter::finish() {
  complete();
  require_free_npy(path_, overwrite_);
  file_->commit();
}

}  // namespace crema
