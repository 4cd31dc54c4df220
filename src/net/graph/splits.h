// Caffe's Split layers, one for each blob with several readers. The planner computes nothing for
// them, but logs and saved nets show them under Caffe's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/net.pb.h"

namespace crema {

// Why Split layers cannot be added.
struct SplitFault {
  int layer = 0;         // of the given net
  std::string text;      // the message
  std::string missing;   // a bottom that no layer makes; "": something else is wrong
  bool has_data = true;  // some layer above makes a blob
};

// Adds Split layers. `origin` receives, for each layer of the result, the index in `net` of the
// layer it comes from. `refuse` is called when a bottom has no producer, or a top has two; it must throw. why_missing: why a blob without a producer has none;
// "" or no function if unknown.
NetParameter insert_splits(
    const NetParameter& net, std::vector<int>* origin,
    const std::function<void(const SplitFault& fault)>& refuse,
    const std::function<std::string(const std::string& blob)>& why_missing = {});

}  // namespace crema
