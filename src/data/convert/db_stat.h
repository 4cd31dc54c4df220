// Statistics of a database.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/databases/find_database.h"

namespace crema {

struct DatabaseFacts {
  RecordKind kind = RecordKind::datum;
  int64_t records = 0;
  std::map<std::string, int64_t> formats;              // "bytes", "real numbers", "JPEG", ...
  std::map<std::vector<int64_t>, int64_t> shapes;      // channels, height, width; or a length
  std::map<int64_t, int64_t> classes;                  // of records with one label
  std::map<int64_t, int64_t> labels_each;              // Datum.labels: how many a record has
  std::map<int64_t, int64_t> box_classes, boxes_each;  // of records with boxes
  bool sorted = false;                                 // class after class: sorted_by_class()
  struct Channel {
    double count = 0, sum = 0, squares = 0;
    double mean() const { return sum / count; }
    double deviation() const;
  };
  std::vector<Channel> channels;  // of records with as many channels as the first
};

// Reads all records on `threads` threads. Encoded images are decoded only for `values`, which needs
// `channels`. Error names the first damaged record.
DatabaseFacts facts_of_database(const Source& source, bool values, int threads);

}  // namespace crema
