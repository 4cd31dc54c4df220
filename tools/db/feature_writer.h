// FeatureWriter: the destination of the rows that a net computes: a database of Datums, HDF5 files
// or a NumPy file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/databases/database_writer.h"
#include "tensor/shape.h"

namespace crema {

class FeatureWriter {
 public:
  virtual ~FeatureWriter() = default;

  // Rows, counted by the first axis of `shape`. `labels`: the same number for each row, or none; only
  // a writer that takes them keeps them.
  virtual void put(const Shape& shape, const std::vector<float>& values,
                   const std::vector<float>& labels) = 0;
  virtual bool takes_labels() const { return false; }
  // As those of DatabaseWriter: complete() all before the first finish().
  virtual void complete() = 0;
  virtual void finish() = 0;
  virtual int64_t count() const = 0;
};

struct FeatureFormat {
  bool numpy = false;       // a NumPy file, otherwise:
  DatabaseFormat database;  // with `overwrite` for both
};

// `kind`: lmdb, leveldb, hdf5 or npy, in upper or lower case; Error for anything else.
FeatureFormat feature_format(const std::string& kind, bool overwrite);

// The resulting name: with .npy appended, or unchanged.
std::string name_of_features(const std::string& path, const FeatureFormat& format);

// Error when something has that name already, unless it is to be replaced and of such a kind.
std::unique_ptr<FeatureWriter> create_features(const std::string& path,
                                               const FeatureFormat& format);

}  // namespace crema
