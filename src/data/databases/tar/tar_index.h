// The records of a tar file in WebDataset's layout: consecutive members whose names are equal up to
// the first dot after the last slash: an image (`0001.jpg`) and its label (`0001.cls`, or
// `0001.json` with "label"). Other members are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct TarRecord {
  uint64_t image, key;  // where they begin, in the file and in `keys`
  uint32_t image_size, key_size;
  int32_t label;      // the class
  uint32_t several;   // or so many numbers
  size_t of_several;  // from here on in `labels`
  uint32_t shard = 0;
};

struct TarIndex {
  std::vector<TarRecord> records;
  std::string keys;           // one after the other
  std::vector<float> labels;  // for records with several
  uint64_t bytes = 0;         // of the file

  // Appends the records of another file.
  void append(TarIndex other, uint32_t shard);
};

// Walks through a tar file. Error, naming the file and the member, when anything is invalid, a record
// has no image or no label, or comes twice.
TarIndex index_tar(const std::string& path);

}  // namespace crema
