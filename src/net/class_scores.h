// A net's scores of classes, and the names of these.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// A blob with one row of scores for each image.
struct ScoreBlob {
  std::string name;
  int64_t classes = 0;
};

// `blob`, the value of a setting such as "-blob", or the output that is a Softmax or Sigmoid, or the only one
// with a row for each of the `batch` images. Error that lists the outputs.
ScoreBlob find_scores(Net& net, const std::string& blob, int64_t batch, const std::string& setting);

// The type of the layer that writes a blob last; "": none does.
std::string producing_type(const Graph& graph, const std::string& blob);

// The names in `file`; none: classes have numbers only. Unless the user has named it (`is_asked`), by a
// setting such as "-labels FILE", a missing file is a warning. Error unless there are as many as classes;
// 0: any number is right.
std::vector<std::string> class_names(const std::string& file, bool is_asked, int64_t classes,
                                     const std::string& setting, Log& log);

}  // namespace crema
