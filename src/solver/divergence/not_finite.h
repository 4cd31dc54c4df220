// Finds where NaN or infinite values first appear, and what to do about them as far as their cause can
// be known; only called when a loss or a result has become NaN or infinite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// A blob or parameter that holds NaN or infinite values.
struct NotFinite {
  std::string layer;     // with the layers that are fused with it
  std::string position;  // `top "ip1"`, `parameter 0` or `gradient of parameter 0`
  int64_t nan = 0, infinite = 0, count = 0;
  bool in_source = false;     // a blob of a layer without bottoms: the data are not finite
  bool in_parameter = false;  // or in its gradient
  // A line for each of the last blobs before it, and for the parameters of its layer.
  std::vector<std::string> statistics;

  // `layer "ip1": its top "ip1" holds 3 nan and 1 infinite of 64 numbers`
  std::string text() const;
};

// The first in the order of the forward pass, which this runs, as number `pass`, with the parameters
// as they are now; none: everything in it is finite.
std::optional<NotFinite> first_not_finite(Net& net, uint64_t pass, bool with_statistics = true);

// Among the parameters alone; the first in Caffe's order.
std::optional<NotFinite> parameter_not_finite(Net& net);
// Among their gradients, the one that the backward pass writes first.
std::optional<NotFinite> gradient_not_finite(Net& net);

// What happened before.
struct BeforeNotFinite {
  bool updated = false;  // an update has changed the weights
  float base_lr = 0;
  std::string weights;  // the files that the net started from; "": none
  bool trains = true;   // false: a net is only used
};

// A sentence without its full stop. where: the first such values, if they are known.
std::string advice_on(Net& net, const std::optional<NotFinite>& where,
                      const BeforeNotFinite& before);

}  // namespace crema
