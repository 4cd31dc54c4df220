// A hash of the content of files, which takes a bounded time however large they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct ContentHash {
  int64_t bytes = 0;    // of all files
  std::string hash;     // "" if there is a problem
  std::string sampled;  // "512 blocks of 64.0 KiB" if not all bytes were read; else ""
  std::string problem;  // why there is no hash
};

// Files of up to 256 MiB together are read as a whole. Of larger ones, 512 blocks of 64 KiB are read
// that are spread evenly. `names` is a text that counts too, such as a list of the files.
// A file that cannot be read, or that is a device or a pipe, is a problem and no Error.
ContentHash hash_of_files(const std::string& names, const std::vector<std::string>& files);

}  // namespace crema
