// What to report about "engine: CUDNN" in a build without cuDNN: any engine is accepted, and the
// fastest kernel is measured, but a request for a missing library is reported.
#pragma once

#include <functional>
#include <string>

#include "proto/net.pb.h"

namespace crema {

// One line with the first such layer's position, from `where` if given, and their number; "" if no
// layer asks for cuDNN.
std::string note_on_cudnn_engine(const NetParameter& net,
                                 const std::function<std::string(int layer)>& where = {});

}  // namespace crema
