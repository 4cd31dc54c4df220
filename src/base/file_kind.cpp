#include "base/file_kind.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file_kind_text.h"
#include "base/files.h"
#include "base/strings.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLooked = 64 << 10;  // bytes of a file

std::string start_of(const std::string& path) {
  std::string bytes(kLooked, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

bool has(std::string_view bytes, size_t at, std::string_view magic) {
  return bytes.size() >= at + magic.size() && bytes.substr(at, magic.size()) == magic;
}

struct Magic {
  size_t at;
  std::string_view bytes;
  const char *what, *use;
};

using namespace std::string_view_literals;

constexpr const char* kImage =
    "classify takes it; ImageData and convert_imageset take a list of images";
constexpr const char* kUnpack = "unpack it first";
constexpr const char* kTorch = "crema convert_weights -from FILE writes a .caffemodel of it";
constexpr const char* kNumPy = "convert it to HDF5 for data, or to .safetensors for weights";

const Magic kMagics[] = {
    {0, "\xff\xd8\xff"sv, "a JPEG picture", kImage},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture", kImage},
    {0, "P5\n"sv, "a picture (PGM)", kImage},
    {0, "P6\n"sv, "a picture (PPM)", kImage},
    {0, "GIF8"sv, "a GIF picture", kImage},
    {0, "II*\0"sv, "a TIFF picture", kImage},
    {0, "MM\0*"sv, "a TIFF picture", kImage},
    {8, "WEBP"sv, "a WebP picture", kImage},
    {8, "AVI "sv, "a video (AVI)", "a layer of type VideoData reads a list of videos"},
    {4, "ftyp"sv, "a video (MP4)", "a layer of type VideoData reads a list of videos"},
    {0, "\x93NUMPY"sv, "a NumPy array (.npy)", kNumPy},
    {4, "TFL3"sv, "a TensorFlow Lite model", "its net and weights cannot be read"},
    {0, "MATLAB 5.0"sv, "a MATLAB file", "convert it to HDF5"},
    {0, "SQLite format 3"sv, "an SQLite database", "it is none for training"},
    {0, "\x1f\x8b"sv, "a file packed by gzip", kUnpack},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "a file packed by xz", kUnpack},
    {0, "BZh"sv, "a file packed by bzip2", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "a file packed by zstd", kUnpack},
    {0, "7z\xbc\xaf"sv, "a 7-Zip archive", kUnpack},
    {0, "Rar!"sv, "a RAR archive", kUnpack},
    {0, "%PDF"sv, "a PDF document", ""},
    {0,
     "\x7f"
     "ELF"sv,
     "a program", ""},
    {16, "\xde\xc0\xef\xbe"sv, "the data file of an LMDB", "give the folder that it is in"},
    {0, "\0\0\x08\x03"sv, "images in MNIST's IDX format",
     "convert_mnist_data makes a database of images and labels"},
    {0, "\0\0\x08\x01"sv, "labels in MNIST's IDX format",
     "convert_mnist_data makes a database of images and labels"},
};

// An archive, by the names of its first members, which zip writes as they are.
FileKind zip_kind(std::string_view bytes) {
  const auto named = [&](std::string_view part) {
    return bytes.find(part) != std::string_view::npos;
  };
  if (named("data.pkl") || named("/version")) return {"a PyTorch file (.pth)", kTorch};
  if (named(".npy")) return {"a NumPy archive (.npz)", kNumPy};
  if (named("model.weights.h5"))
    return {"a Keras model (.keras)", "save its arrays as .safetensors first"};
  return {"a zip archive", kUnpack};
}

bool looks_like_safetensors(std::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length > 0 && length < (uint64_t{1} << 30);
}

FileKind kind_of_file(const std::string& path) {
  const std::string bytes = start_of(path);
  if (bytes.empty()) return {kEmptyKind, ""};
  if (has(bytes, 0, "\x89HDF")) return {kHdf5Kind, ""};
  for (const Magic& magic : kMagics)
    if (has(bytes, magic.at, magic.bytes)) return {magic.what, magic.use};
  if (has(bytes, 0, "PK\x03\x04")) return zip_kind(bytes);
  if (has(bytes, 257, "ustar"))
    return {"a tar file", "a layer of type Data reads samples of WebDataset with `backend: TAR`"};
  if (looks_like_safetensors(bytes)) return {"a safetensors file", kTorch};
  if (bytes[0] == '\x80' && bytes.size() > 1 && bytes[1] >= 2 && bytes[1] <= 5)
    return {"a pickle of Python",
            "crema convert_weights reads PyTorch's, convert_cifar_data CIFAR's"};
  const bool text = std::none_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return c < 9 || (c > 13 && c < 32 && c != 27);
  });
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return text ? text_kind(bytes) : message_kind(bytes, error ? bytes.size() : size);
}

}  // namespace

FileKind file_kind(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return kind_of_file(path);
  if (fs::exists(path + "/data.mdb", error))
    return {"an LMDB", "a layer of type Data reads it with `backend: LMDB`"};
  if (fs::exists(path + "/CURRENT", error))
    return {"a LevelDB", "a layer of type Data reads it with `backend: LEVELDB`"};
  return {};
}

bool may_be_list(const FileKind& kind) {
  return kind.what.empty() || starts_with(kind.what, "a list") || kind.what == kTextKind ||
         kind.what == kTableKind || kind.what == kEmptyKind || kind.what == kUnknownKind;
}

std::string what_it_is(const FileKind& kind) {
  if (kind.what.empty() || kind.what == kUnknownKind) return "";
  return cat("; it is ", kind.what, kind.use.empty() ? "" : ": " + kind.use);
}

}  // namespace crema
