// The data that a net reads, and what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/net.pb.h"
#include "tools/runs/content_hash.h"

namespace crema {

struct DataSet {
  std::string layer, field;        // `data_param.source`: where the net names it
  std::string path;                // as found from the working directory
  std::vector<std::string> roots;  // prefixes of the names in a list
  std::string folder;              // where these are looked up too
};

// Each file or folder that the net's layers name. `folder`: of the net's file.
std::vector<DataSet> data_sets_of(const NetParameter& net, const std::string& folder);

struct DataSetContent {
  std::string kind;   // LMDB, LevelDB, HDF5, tar, list, folder or file
  int64_t files = 0;  // their number
  ContentHash content;
};

// The content of a list is its text and the files that it names. No Error: see ContentHash::problem.
DataSetContent content_of(const DataSet& set);

}  // namespace crema
