// Hdf5Blocks: rows of the datasets of HDF5 files, as float32, in blocks. The most recent ones stay
// in memory, up to a limit; the files need not fit. Threads share them: one reads at a time, others
// continue with blocks in memory.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/databases/hdf5/hdf5_file.h"

namespace crema {

class Hdf5Blocks {
 public:
  struct File {
    std::string path;
    int64_t rows = 0;
    std::vector<int64_t> block_rows;  // of each dataset
  };
  struct Set {
    std::string name;
    Shape row;
  };
  using Values = std::shared_ptr<const float[]>;

  explicit Hdf5Blocks(int64_t most_values) : most_values_(most_values) {}

  void add(File file) { files_.push_back(std::move(file)); }
  void add(Set set) { sets_.push_back(std::move(set)); }
  const std::vector<File>& files() const { return files_; }
  const std::vector<Set>& sets() const { return sets_; }

  // The values of a row, and of those after it in its block. They stay valid as long as the
  // pointer.
  Values at(int file, int64_t row, int set) const;

  int64_t values_in_memory() const;

 private:
  struct Key {
    int file, set;
    int64_t block;
    auto operator<=>(const Key&) const = default;
  };
  struct Block {
    Key key;
    Values values;
    int64_t count;
  };
  using Blocks = std::list<Block>;  // the one used last comes first
  struct OpenFile {
    int file;
    std::unique_ptr<Hdf5File> content;
    std::vector<bool> wide;  // per dataset: integers that float32 may not represent
  };

  Values find(const Key& key) const;
  void make_room(int64_t values) const;
  Values read(const Key& key, int64_t first, int64_t count) const;
  const OpenFile& open(int file) const;

  const int64_t most_values_;
  std::vector<File> files_;
  std::vector<Set> sets_;

  mutable std::mutex mutex_;  // for these
  mutable Blocks blocks_;
  mutable std::map<Key, Blocks::iterator> places_;
  mutable int64_t values_ = 0;

  mutable std::mutex reading_;  // for the files
  mutable std::vector<OpenFile> open_;
};

}  // namespace crema
