// The tar files of a data set: shards, as WebDataset calls them.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct TarShard {
  std::string name;  // as the folder, the list or the braces give it; empty for a single file
  std::string path;
};

// "train-{000..146}.tar" as 147 names, "{a,b}-{0..9}.tar" as 20; a text without braces as itself.
std::vector<std::string> expand_braces(const std::string& text);

// `source`: a tar file, a folder of files that end in .tar, in the order of their names, a text
// file with one per line, or names with braces. Error if there are none.
std::vector<TarShard> tar_shards(const std::string& source);

// Whether `path` is meant as such a source, judging by its name and the names in it.
bool looks_like_tar(const std::string& path);

// find_file() that also accepts names with braces: the position of the first of them decides.
std::string find_source(const std::string& source, const std::string& folder);

}  // namespace crema
