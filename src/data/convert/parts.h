// Parts: the databases that a converter writes: one, or two into which the records are split by
// class.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "data/convert/convert.h"

namespace crema {

// Which records are for training, and which for validation, in the order of writing.
struct Split {
  std::vector<int64_t> training, validation;
};

// `labels`: the class of each record; `split` as in ConvertOptions. As many records as it says, with
// shares of each class that differ by less than one record. Error when either part would be empty.
Split split_by_class(const std::vector<int>& labels, double split, uint64_t seed);

// The names of the two parts: "pets_lmdb" gives "pets_train_lmdb" and "pets_val_lmdb", as does
// "pets_train_lmdb"; "pets" gives "pets_train" and "pets_val".
std::pair<std::string, std::string> split_paths(const std::string& path);

class Parts {
 public:
  struct Part {
    std::string path;
    std::vector<int64_t> records;
    std::unique_ptr<DatabaseWriter> writer;
    std::map<int, int64_t> classes{};  // number of records written of each

    void put(const std::string& key, const google::protobuf::Message& record, int label);
  };

  // Creates the databases, for records with these labels. shuffle: in random order even if they are
  // not split.
  Parts(const std::string& path, const std::vector<int>& labels, bool shuffle,
        const ConvertOptions& options);

  // The order of writing: record number `index` of the list is the i-th of its part.
  struct Turn {
    Part* part;
    int64_t i, index;
  };
  int64_t turns() const;
  Turn turn(int64_t number);
  // Calls use(part, i, index) for each of them.
  void each_record(const std::function<void(Part& part, int64_t i, int64_t index)>& use);
  // complete() is done by finish() unless it was before, as with DatabaseWriter. Logs how many records
  // of each class a split gave to either part.
  void complete();
  void finish(Log& log);

 private:
  void log_classes(Log& log) const;

  std::vector<Part> parts_;
};

}  // namespace crema
