#include "data/lists/mat_file.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace crema {
namespace {

constexpr size_t kHeader = 128, kEndian = 126, kTag = 8;
constexpr size_t kMaxInflated = size_t{1} << 28;
constexpr int kMaxDepth = 16;

// The kinds of elements in a file.
enum Type : uint32_t {
  int8 = 1,
  uint8 = 2,
  int16 = 3,
  uint16 = 4,
  int32 = 5,
  uint32 = 6,
  single = 7,
  real = 9,
  int64 = 12,
  uint64 = 13,
  matrix = 14,
  compressed = 15
};
// The classes of a matrix.
enum Class : uint32_t {
  cell = 1,
  structure = 2,
  first_numeric = 6,
  single_class = 7,
  last_numeric = 15
};

template <typename T>
T number_at(std::string_view bytes, size_t at) {
  require(bytes.size() >= sizeof(T) && at <= bytes.size() - sizeof(T),
          "the MATLAB file is cut off or damaged");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Element {
  uint32_t type = 0;
  std::string_view content;
};

// Takes an element from the front.
Element take(std::string_view& rest) {
  const auto first = number_at<uint32_t>(rest, 0);
  Element element;
  size_t size = first >> 16, begin = 4, end = kTag;  // for up to four bytes, which are in the tag
  element.type = first & 0xffff;
  if (size == 0) {
    element.type = first;
    size = number_at<uint32_t>(rest, 4);
    begin = kTag;
    end = element.type == compressed ? begin + size : begin + (size + 7) / 8 * 8;
  }
  if (begin + size > rest.size()) fail("the MATLAB file is cut off or damaged");
  element.content = rest.substr(begin, size);
  rest.remove_prefix(std::min(end, rest.size()));
  return element;
}

std::string inflated(std::string_view packed) {
  z_stream stream{};
  require(inflateInit(&stream) == Z_OK, "zlib cannot be started");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  int result = Z_OK;
  char piece[1 << 16];
  while (result == Z_OK && bytes.size() <= kMaxInflated) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    result = inflate(&stream, Z_NO_FLUSH);
    bytes.append(piece, sizeof piece - stream.avail_out);
  }
  inflateEnd(&stream);
  require(bytes.size() <= kMaxInflated, "a variable has more than ", kMaxInflated, " bytes");
  require(result == Z_STREAM_END, "a compressed variable of the MATLAB file is damaged");
  return bytes;
}

template <typename T>
void convert(std::string_view bytes, std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(number_at<T>(bytes, i * sizeof(T)));
}

std::vector<double> numbers_of(const Element& element, size_t count) {
  // Before allocating: there is at least a byte for each.
  require(count <= element.content.size(), "the MATLAB file is cut off or damaged");
  std::vector<double> values(count);
  const std::string_view bytes = element.content;
  switch (element.type) {
    case int8:
      convert<int8_t>(bytes, values);
      break;
    case uint8:
      convert<uint8_t>(bytes, values);
      break;
    case int16:
      convert<int16_t>(bytes, values);
      break;
    case uint16:
      convert<uint16_t>(bytes, values);
      break;
    case int32:
      convert<int32_t>(bytes, values);
      break;
    case uint32:
      convert<uint32_t>(bytes, values);
      break;
    case single:
      convert<float>(bytes, values);
      break;
    case real:
      convert<double>(bytes, values);
      break;
    case int64:
      convert<int64_t>(bytes, values);
      break;
    case uint64:
      convert<uint64_t>(bytes, values);
      break;
    default:
      fail("a matrix has elements of the unknown type ", element.type);
  }
  return values;
}

// The part before the values of a matrix.
struct Head {
  uint32_t kind = 0;
  std::vector<int64_t> extents;
  std::string name;
  size_t count() const {
    size_t product = 1;
    for (const int64_t extent : extents) {
      require(extent >= 0 && (extent == 0 || product <= kMaxInflated / static_cast<size_t>(extent)),
              "a matrix has an impossible size");
      product *= static_cast<size_t>(extent);
    }
    return product;
  }
};

Head take_head(std::string_view& rest) {
  Head head;
  head.kind = number_at<uint32_t>(take(rest).content, 0) & 0xff;
  const std::string_view extents = take(rest).content;
  for (size_t i = 0; i < extents.size() / 4; ++i)
    head.extents.push_back(number_at<int32_t>(extents, 4 * i));
  head.name = take(rest).content;
  return head;
}

MatArray read_matrix(std::string_view content, std::string_view path, int depth);

// The first element's field; `rest` begins after the head.
MatArray read_field(std::string_view rest, std::string_view path, int depth) {
  const auto length = number_at<uint32_t>(take(rest).content, 0);
  const std::string_view names = take(rest).content;
  require(length > 0, "a struct of the MATLAB file is damaged");
  const std::string_view wanted = path.substr(0, path.find('.'));
  std::string there;
  for (size_t i = 0; i < names.size() / length; ++i) {
    const std::string name(std::string(names.substr(i * length, length)).c_str());
    const Element field = take(rest);
    if (name == wanted)
      return read_matrix(field.content,
                         path.size() > wanted.size() ? path.substr(wanted.size() + 1) : "", depth);
    there += cat(there.empty() ? "" : ", ", name);
  }
  fail("its struct has no field \"", wanted, "\", but ", there);
}

// `path`: the fields that are still to be entered; "": none.
MatArray read_matrix(std::string_view content, std::string_view path, int depth) {
  require(depth < kMaxDepth, "the MATLAB file has more than ", kMaxDepth,
          " structs in one another");
  std::string_view rest = content;
  const Head head = take_head(rest);
  if (head.kind == cell || head.kind == structure)
    require(head.count() > 0, "a cell or struct of the MATLAB file is empty");
  if (head.kind == cell) return read_matrix(take(rest).content, path, depth + 1);
  if (head.kind == structure) {
    require(!path.empty(), "it is a struct; name one of its fields");
    return read_field(rest, path, depth + 1);
  }
  require(path.empty(), "it is no struct, so it has no field \"", path, "\"");
  require(head.kind >= first_numeric && head.kind <= last_numeric,
          "it is no matrix of numbers, but of class ", head.kind);
  return {head.extents, numbers_of(take(rest), head.count())};
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string element(Type type, const std::string& content) {
  std::string bytes = bytes_of<uint32_t>({type, static_cast<uint32_t>(content.size())}) + content;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

}  // namespace

MatArray read_mat(std::string_view file, const std::string& name) {
  if (file.substr(0, 10) == "MATLAB 7.3")
    fail("the file is of MATLAB's version 7.3; save it with save(..., '-v7')");
  require(file.size() > kHeader && file.substr(kEndian, 2) == "IM" &&
              number_at<uint16_t>(file, kEndian - 2) == 0x0100,
          "it is no MATLAB file of version 5 to 7");
  std::string_view rest = file.substr(kHeader);
  const std::string_view wanted = std::string_view(name).substr(0, name.find('.'));
  std::string there, unpacked;
  while (!rest.empty()) {
    Element element = take(rest);
    if (element.type == compressed) {
      unpacked = inflated(element.content);
      std::string_view inside = unpacked;
      element = take(inside);
    }
    if (element.type != matrix) continue;
    std::string_view body = element.content;
    const Head head = take_head(body);
    if (head.name != wanted) {
      there += cat(there.empty() ? "" : ", ", head.name);
      continue;
    }
    try {
      return read_matrix(element.content,
                         name.size() > wanted.size() ? name.substr(wanted.size() + 1) : "", 0);
    } catch (const Error& problem) {
      fail("variable ", name, ": ", problem.what());
    }
  }
  fail("there is no variable \"", wanted, "\"",
       there.empty() ? ", nor any other" : cat(", but ", there));
}

std::string mat_of(const std::string& name, const std::vector<int64_t>& extents,
                   const float* values) {
  static_assert(std::endian::native == std::endian::little, "the header says so");
  size_t count = 1;
  for (const int64_t extent : extents) count *= static_cast<size_t>(extent);
  require(count < UINT32_MAX / sizeof(float) - kHeader, "an array of ", count,
          " numbers is larger than the 4 GiB of a MATLAB file of version 5");
  std::string header = "MATLAB 5.0 MAT-file";
  header.resize(kEndian - 2, ' ');
  header += bytes_of<uint16_t>({0x0100}) + "IM";
  const std::string content =
      element(uint32, bytes_of<uint32_t>({single_class, 0})) +
      element(int32, bytes_of(std::vector<int32_t>(extents.begin(), extents.end()))) +
      element(int8, name) + element(single, bytes_of(std::vector<float>(values, values + count)));
  return header + element(matrix, content);
}

}  // namespace crema
