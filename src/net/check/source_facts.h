// What a database or a list of images reveals about a run before it begins.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/layer.pb.h"

namespace crema {

struct SourceFacts {
  int64_t records = 0;  // 0: unknown without reading all of it
  int64_t batch = 0;
  bool shuffles = false;
  bool spatial = true;             // a record has rows and columns
  std::vector<std::string> names;  // keys or paths of the first records
  // Labels of records in their order: of all, of some that are spread evenly, or of the first ones;
  // none if the layer has no top for them.
  std::vector<int64_t> labels;
  bool all_labels = false;
  // Sums over the values of some records, before transform_param, by channel. Encoded images are
  // decoded.
  struct Channel {
    double count = 0, sum = 0, squares = 0;
  };
  std::vector<Channel> values;
  // For AnnotatedData: the objects of the records that were read.
  struct Objects {
    int64_t count = 0, outside = 0;         // outside: of the image, or without an area
    std::string first_outside;              // the record
    std::map<int64_t, std::string> labels;  // with the first record that has each
  };
  Objects objects;
};

// For Data, AnnotatedData and ImageData layers; none for others. Reads at most a few thousand
// records. Error if there are no data.
std::optional<SourceFacts> facts_of(const LayerParameter& layer, const std::string& folder);

}  // namespace crema
