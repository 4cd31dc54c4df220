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

// -blob, or the output that is a Softmax or Sigmoid, or the only one with a row for each of the
// `batch` images. Error that lists the outputs.
ScoreBlob find_scores(Net& net, int64_t batch);

// The lines of -labels, or of labels.txt in `folder`; none: classes have numbers only. Error when
// -labels has another number of them than there are classes; such a labels.txt is left with a
// warning.
std::vector<std::string> class_names(const std::string& folder, int64_t classes, Log& log);

}  // namespace crema
