// The names of a database's classes. They belong to the database: `labels.txt` in its folder, where
// converters write it and Caffe's readers of LMDB and LevelDB ignore it, moves with it. For a
// database that is a file, or in a read-only folder, it is NAME.labels.txt next to it. A labels.txt
// elsewhere belongs to something else and is never used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

constexpr const char* kClassNamesFile = "labels.txt";

struct ClassNames {
  std::string path;                // "": there are none, classes have numbers only
  std::vector<std::string> names;  // from class 0 on

  bool empty() const { return names.empty(); }
};

// One per line; empty lines at the end do not count. Error if there is no name.
ClassNames read_class_names(const std::string& path);
// The same of a text that was read from `path`.
ClassNames class_names_in(const std::string& path, const std::string& text);

// The file with the names of `source`: an LMDB, a LevelDB, HDF5 files or their list, tar files, a list
// of images. "": it has none.
std::string class_names_file(const std::string& source);

// The names of `source`; empty if it has none.
ClassNames class_names_of_source(const std::string& source);

// The text of such a file. Error for a name that is empty or has more than a line.
std::string text_of_class_names(const std::vector<std::string>& names);

// The name of a class, or its number if there are no names. Error if there are too few.
std::string class_text(int64_t label, const ClassNames& names);

// Error unless there are `classes` names, or none. `what` has the classes: "the net".
void require_count(const ClassNames& names, int64_t classes, const std::string& what);

}  // namespace crema
