#include "exchange/onnx/onnx_tensor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "tensor/half.h"

namespace crema {

namespace {

using Type = onnx::TensorProto;

// Bytes of an element in raw_data; 0: a type that is not read.
size_t bytes_of_type(int type) {
  switch (type) {
    case Type::BOOL:
    case Type::INT8:
    case Type::UINT8:
      return 1;
    case Type::FLOAT16:
    case Type::BFLOAT16:
    case Type::INT16:
    case Type::UINT16:
      return 2;
    case Type::FLOAT:
    case Type::INT32:
    case Type::UINT32:
      return 4;
    case Type::DOUBLE:
    case Type::INT64:
    case Type::UINT64:
      return 8;
    default:
      return 0;
  }
}

bool is_float_type(int type) {
  return type == Type::FLOAT || type == Type::DOUBLE || type == Type::FLOAT16 ||
         type == Type::BFLOAT16;
}

uint64_t number_of(const std::string& text, const std::string& key, const std::string& what) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  require(problem == std::errc() && rest == end, what, ": ", key, " of its file is \"",
          visible(text), "\", expected a number");
  return number;
}

// Values in another file of the model's folder.
std::string external_bytes(const onnx::TensorProto& tensor, const std::string& folder, size_t bytes,
                           const std::string& what) {
  std::string location;
  uint64_t offset = 0, length = bytes;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_of(entry.value(), "offset", what);
    if (entry.key() == "length") length = number_of(entry.value(), "length", what);
  }
  const std::filesystem::path path(location);
  bool outside = location.empty() || path.is_absolute();
  for (const auto& part : path) outside = outside || part == "..";
  const std::string file = folder + "/" + location;
  if (!outside) {
    std::error_code problem;
    const auto top = std::filesystem::canonical(folder, problem);
    const auto real = std::filesystem::weakly_canonical(file, problem);
    const auto inside = real.lexically_relative(top);
    outside = inside.empty() || *inside.begin() == "..";
  }
  require(!outside, what, ": its values are in \"", visible(location),
          "\", but only files in the folder of the model are read");
  require(file_exists(file), what, ": the file of its values, ", visible(file), ", does not exist");
  require_regular(file);
  require(length == bytes, what, ": ", length, " bytes are named in ", visible(file), ", but ",
          bytes, " are needed");
  std::ifstream in(file, std::ios::binary);
  std::string result(bytes, '\0');
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(result.data(), static_cast<std::streamsize>(bytes));
  require(static_cast<size_t>(in.gcount()) == bytes, what, ": ", visible(file), " has no ", bytes,
          " bytes from byte ", offset, " on: it is incomplete");
  return result;
}

template <typename From, typename To>
void convert_raw(const std::string& raw, std::vector<To>* to) {
  const size_t count = raw.size() / sizeof(From);
  to->resize(count);
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, raw.data() + i * sizeof(From), sizeof(From));
    (*to)[i] = static_cast<To>(value);
  }
}

void read_raw(int type, const std::string& raw, OnnxTensor* to) {
  switch (type) {
    case Type::FLOAT:
      return convert_raw<float>(raw, &to->floats);
    case Type::DOUBLE:
      return convert_raw<double>(raw, &to->floats);
    case Type::FLOAT16:
      return convert_raw<Half>(raw, &to->floats);
    case Type::BFLOAT16:
      return convert_raw<BFloat16>(raw, &to->floats);
    case Type::BOOL:
    case Type::UINT8:
      return convert_raw<uint8_t>(raw, &to->ints);
    case Type::INT8:
      return convert_raw<int8_t>(raw, &to->ints);
    case Type::INT16:
      return convert_raw<int16_t>(raw, &to->ints);
    case Type::UINT16:
      return convert_raw<uint16_t>(raw, &to->ints);
    case Type::INT32:
      return convert_raw<int32_t>(raw, &to->ints);
    case Type::UINT32:
      return convert_raw<uint32_t>(raw, &to->ints);
    default:
      return convert_raw<int64_t>(raw, &to->ints);
  }
}

template <typename Halves>
void read_halves(const onnx::TensorProto& tensor, std::vector<float>* to) {
  for (const int32_t bits : tensor.int32_data()) {
    Halves value;
    value.bits = static_cast<uint16_t>(bits);
    to->push_back(value);
  }
}

void read_fields(const onnx::TensorProto& tensor, OnnxTensor* to) {
  switch (tensor.data_type()) {
    case Type::FLOAT:
      to->floats.assign(tensor.float_data().begin(), tensor.float_data().end());
      break;
    case Type::DOUBLE:
      to->floats.assign(tensor.double_data().begin(), tensor.double_data().end());
      break;
    case Type::FLOAT16:
      read_halves<Half>(tensor, &to->floats);
      break;
    case Type::BFLOAT16:
      read_halves<BFloat16>(tensor, &to->floats);
      break;
    case Type::INT64:
      to->ints.assign(tensor.int64_data().begin(), tensor.int64_data().end());
      break;
    case Type::UINT32:
    case Type::UINT64:
      to->ints.assign(tensor.uint64_data().begin(), tensor.uint64_data().end());
      break;
    default:
      to->ints.assign(tensor.int32_data().begin(), tensor.int32_data().end());
  }
}

}  // namespace

OnnxTensor OnnxTensor::of_ints(std::vector<int64_t> values) {
  OnnxTensor tensor;
  tensor.is_int = true;
  tensor.shape = Shape{static_cast<int64_t>(values.size())};
  tensor.ints = std::move(values);
  return tensor;
}

OnnxTensor OnnxTensor::scalar(float value) {
  OnnxTensor tensor;
  tensor.floats = {value};
  return tensor;
}

void OnnxTensor::resize(const Shape& to) {
  shape = to;
  if (is_int)
    ints.resize(to.count());
  else
    floats.resize(to.count());
}

std::vector<float> OnnxTensor::as_floats() const {
  if (!is_int) return floats;
  return {ints.begin(), ints.end()};
}

std::vector<int64_t> OnnxTensor::as_ints() const {
  if (is_int) return ints;
  std::vector<int64_t> result;
  result.reserve(floats.size());
  for (const float value : floats) result.push_back(truncated(value));
  return result;
}

int64_t truncated(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return std::numeric_limits<int64_t>::max();
  return value < -kEnd ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

int64_t onnx_elements(const std::vector<int64_t>& dims, const std::string& what) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    require(dim >= 0, what, ": extent ", dim, " is negative");
    empty = empty || dim == 0;
  }
  if (empty) return 0;
  for (const int64_t dim : dims) {
    require(dim <= kMaxOnnxElements / count, what, ": it has more than ", kMaxOnnxElements,
            " values (", Shape(dims).brief(), ")");
    count *= dim;
  }
  return count;
}

void check_folded(const Shape& shape) {
  require(onnx_elements(shape.dims(), "the result") <= kMaxFoldedElements,
          "the result has more than ", kMaxFoldedElements, " values (", shape.brief(), ")");
}

OnnxTensor read_onnx_tensor(const onnx::TensorProto& tensor, const std::string& folder,
                            const std::string& what) {
  OnnxTensor result;
  result.shape = Shape(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
  const int64_t count = onnx_elements(result.shape.dims(), what);
  const size_t each = bytes_of_type(tensor.data_type());
  require(each > 0, what, ": its type has number ", tensor.data_type(),
          ", which is none of the floating-point, integer and boolean types that are read");
  result.is_int = !is_float_type(tensor.data_type());
  const size_t bytes = static_cast<size_t>(count) * each;
  if (tensor.data_location() == Type::EXTERNAL) {
    read_raw(tensor.data_type(), external_bytes(tensor, folder, bytes, what), &result);
  } else if (tensor.has_raw_data()) {
    require(tensor.raw_data().size() == bytes, what, ": ", tensor.raw_data().size(),
            " bytes of values for ", count, " of ", each, " bytes");
    read_raw(tensor.data_type(), tensor.raw_data(), &result);
  } else {
    read_fields(tensor, &result);
  }
  const size_t values = result.is_int ? result.ints.size() : result.floats.size();
  require(values == static_cast<size_t>(count), what, ": ", values, " values for a shape of ",
          count, " (", result.shape.brief(), ")");
  return result;
}

}  // namespace crema
