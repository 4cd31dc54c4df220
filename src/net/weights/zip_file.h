// Reads zip files whose entries are stored, not compressed, through libzip.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

struct zip;  // libzip's, whose header only zip_file.cpp includes

namespace crema {

class ZipFile {
 public:
  // False in a build without libzip, in which opening any file is an Error.
  static bool available();

  // Error when the directory at the file's end is damaged.
  explicit ZipFile(const std::string& path);
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  std::vector<std::string> names() const;
  // In bytes; empty when there is no such entry.
  std::optional<uint64_t> size(const std::string& name) const;
  // Error when the entry is larger than `maximum`, is not stored, is cut short or does not match its
  // checksum.
  std::vector<char> read(const std::string& name, uint64_t maximum) const;

 private:
  struct Entry {
    uint64_t index = 0, size = 0;
    bool stored = false;  // neither compressed nor encrypted
  };
  std::string path_;
  zip* archive_ = nullptr;
  std::map<std::string, Entry> entries_;
};

}  // namespace crema
