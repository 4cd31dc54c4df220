// Caffe's Split layers, one for each blob with several readers. The planner computes nothing for
// them, but logs and saved nets show them under Caffe's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/net.pb.h"

namespace crema {

// Adds Split layers. `origin` receives, for each layer of the result, the index in `net` of the
// layer it comes from. `fail_at` is called with a layer of `net` and a message when a bottom has no
// producer, or a top has two; it must throw. why_missing: why a blob without a producer has none;
// "" or no function if unknown.
NetParameter insert_splits(
    const NetParameter& net, std::vector<int>* origin,
    const std::function<void(int layer, const std::string& message)>& fail_at,
    const std::function<std::string(const std::string& blob)>& why_missing = {});

}  // namespace crema
