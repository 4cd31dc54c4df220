// Balance: an endless order of records in which all classes come equally often (`balance: true`).
//
// Samples come in rounds, each with one record of every class, the classes in a new random order. In
// round r each class gives the r-th of its records, counted through all of them again and again, in
// a new random order each time. So the record at a position is a pure function of the seed and the
// position: threads, ranks and resuming change nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/dataset.h"

namespace crema {

class Balance {
 public:
  // `classes`: of each record, by any numbers.
  Balance(const std::vector<int64_t>& classes, Random random);
  // Reads the classes of all records, on several threads. Error names the first that has none.
  static std::unique_ptr<Balance> of(const Dataset& samples, Random random);

  struct Place {
    int64_t record;
    int64_t turn;  // earlier occurrences of the record
  };
  // `position`: counts the samples of all epochs.
  Place at(int64_t position) const;

  int64_t classes() const { return static_cast<int64_t>(begins_.size()) - 1; }
  // "10 classes of 20 to 5000 records each"
  std::string describe() const;

 private:
  std::vector<int64_t> records_;  // class after class
  std::vector<int64_t> begins_;   // where each class begins, and the end
  Random random_;
};

// The class of a label in a blob; none for one that is not an integer.
std::optional<int64_t> class_of_label(float label);

}  // namespace crema
