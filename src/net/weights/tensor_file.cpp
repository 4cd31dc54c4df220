#include "net/weights/tensor_file.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/random_access_file.h"
#include "base/strings.h"
#include "net/weights/safetensors.h"
#include "net/weights/torch_archive.h"
#include "net/weights/torch_file.h"
#include "tensor/half.h"

namespace crema {
namespace {

static_assert(std::endian::native == std::endian::little, "as the files are");

template <typename T>
std::vector<float> widened(const std::vector<char>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

}  // namespace

uint64_t dtype_width(const std::string& dtype) {
  static const std::map<std::string, uint64_t> widths = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  const auto found = widths.find(dtype);
  return found == widths.end() ? 0 : found->second;
}

std::vector<float> floats_of(const std::vector<char>& bytes, const std::string& dtype,
                             const std::string& what) {
  if (dtype == "F32") return widened<float>(bytes);
  if (dtype == "F64") return widened<double>(bytes);
  if (dtype == "I64") return widened<int64_t>(bytes);
  if (dtype == "F16") return widened<Half>(bytes);
  if (dtype == "BF16") return widened<BFloat16>(bytes);
  fail(what, "dtype ", dtype, "; expected F32, F16, BF16, F64 or I64");
}

std::unique_ptr<TensorFile> open_tensor_file(const std::string& path) {
  constexpr size_t kLongest = 16;
  std::string start(kLongest, '\0');
  start.resize(RandomAccessFile(path).read(0, start.data(), start.size()));
  if (starts_with(start, kZipMagic) || starts_with(start, kLegacyMagic))
    return std::make_unique<TorchFile>(path);
  const FileKind kind = file_kind(path);
  require(kind.what.empty() || kind.what == "a safetensors file" || kind.what == kUnknownKind ||
              kind.what == kTextKind,
          path, ": holds no tensors of PyTorch", what_it_is(kind));
  return std::make_unique<Safetensors>(path);
}

}  // namespace crema
