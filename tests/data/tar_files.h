// Tar files for tests, byte by byte, and their contents.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/strings.h"
#include "data/databases/source.h"

namespace crema::tests {

// A header of the POSIX format, with its checksum.
inline std::string tar_header(const std::string& name, uint64_t size, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  const auto octal = [](uint64_t value, int digits) {
    char text[32];
    std::snprintf(text, sizeof(text), "%0*llo", digits, static_cast<unsigned long long>(value));
    return std::string(text);
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, octal(size, 11));
  put(136, "00000000000");
  put(148, std::string(8, ' '));
  put(156, std::string(1, type));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header;
}

// A member with its content, filled up.
inline std::string tar_member(const std::string& name, const std::string& content,
                              char type = '0') {
  return tar_header(name, content.size(), type) + content +
         std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

// An image, which is none, and its class.
inline std::string tar_record(const std::string& key, const std::string& image,
                              const std::string& label) {
  return tar_member(key + ".cls", label) + tar_member(key + ".jpg", image);
}

// "KEY=label:image ..." of all records; several labels with commas between them.
inline std::string records_of(const Source& source) {
  std::string text;
  for (int64_t i = 0; i < source.size(); ++i) {
    Datum datum;
    source.read(i, datum);
    EXPECT_TRUE(datum.encoded());
    text += cat(i > 0 ? " " : "", source.key(i), "=");
    if (datum.labels_size() == 0) text += cat(datum.label());
    for (int k = 0; k < datum.labels_size(); ++k) text += cat(k > 0 ? "," : "", datum.labels(k));
    text += ":" + datum.data();
  }
  return text;
}

inline std::string records_of(const std::string& path) {
  return records_of(*open_database(path, DataParameter::TAR));
}

}  // namespace crema::tests
