// Label maps of MATLAB and in PNGs.
#include <zlib.h>

#include <cstring>

#include "base/error.h"
#include "base/png.h"
#include "data/images/png_numbers.h"
#include "data/lists/mat_file.h"
#include "fuzz/fuzz.h"
#include "support.h"

namespace crema::tests {
namespace label_files_test {

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

// Padded to eight bytes; up to four of them fit into the tag.
std::string element(uint32_t type, const std::string& content) {
  const auto size = static_cast<uint32_t>(content.size());
  if (size > 0 && size <= 4)
    return bytes_of<uint32_t>({size << 16 | type}) + content + std::string(4 - size, '\0');
  return bytes_of<uint32_t>({type, size}) + content + std::string((8 - size % 8) % 8, '\0');
}

std::string matrix(uint32_t kind, int32_t height, int32_t width, const std::string& name,
                   const std::string& values) {
  return element(14, element(6, bytes_of<uint32_t>({kind, 0})) +
                         element(5, bytes_of<int32_t>({height, width})) + element(1, name) +
                         values);
}

// A struct with two fields, of which the first is a cell.
std::string labels() {
  const std::string numbers =
      matrix(9, 2, 3, "", element(2, bytes_of<uint8_t>({0, 1, 2, 3, 4, 255})));
  const std::string cell = matrix(1, 2, 1, "", numbers + numbers);
  std::string names = "Borders";
  names.resize(16);
  names += "Labels";
  names.resize(32);
  return matrix(2, 1, 1, "GTcls",
                element(5, bytes_of<int32_t>({16})) + element(1, names) + cell + numbers);
}

const std::string& header() {
  static const std::string text = [] {
    std::string bytes = "MATLAB 5.0 MAT-file";
    bytes.resize(124, ' ');
    return bytes + bytes_of<uint16_t>({0x0100}) + "IM";
  }();
  return text;
}

std::string compressed(const std::string& content) {
  uLongf size = compressBound(content.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(content.data()), content.size());
  packed.resize(size);
  return bytes_of<uint32_t>({15, static_cast<uint32_t>(size)}) + packed;
}

TEST(Fuzz, MatlabFiles) {
  fuzz({"MATLAB file",
        [] {
          const std::string other =
              matrix(6, 1, 2, "GTcls", element(9, bytes_of<double>({-1, 1e300})));
          return std::vector<Files>{{{"list", labels()}},
                                    {{"list", other}},
                                    {{"list", matrix(6, 1, 1, "x", "") + labels()}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files["list"], other.at("list"));
        },
        [](const std::string&, const Files& files) {
          const std::string& body = files.at("list");
          std::string problem;
          size_t accepted = 0;
          for (const char* name : {"GTcls", "GTcls.Labels", "GTcls.Borders"}) {
            for (const std::string& file : {header() + body, header() + compressed(body), body}) {
              try {
                const MatArray found = read_mat(file, name);
                size_t count = 1;
                for (const int64_t extent : found.extents) count *= static_cast<size_t>(extent);
                require(found.values.size() == count, "a wrong number of values");
                ++accepted;
              } catch (const Error& error) {
                problem = error.what();
              }
            }
          }
          require(accepted > 0, problem);
        }});
}

TEST(Fuzz, PngNumbers) {
  fuzz({"PNG of labels",
        [] {
          Picture picture{9, 7, 1, {}, ""};
          for (int i = 0; i < 63; ++i) picture.bytes.push_back(static_cast<uint8_t>(i * i % 21));
          return std::vector<Files>{{{"list", png_of(picture)}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files["list"], other.at("list"));
        },
        [](const std::string&, const Files& files) {
          const Image found = decode_png_numbers(files.at("list"));
          require(static_cast<int64_t>(found.pixels.size()) == found.height * found.width,
                  "a wrong number of pixels");
        }});
}

}  // namespace label_files_test
}  // namespace crema::tests
