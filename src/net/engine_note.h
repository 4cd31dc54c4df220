// What becomes of "engine: CUDNN" in a build without cuDNN: any engine is accepted, and the fastest
// kernel is measured, but who asks for a library that is absent is told.
#pragma once

#include <functional>
#include <string>

#include "proto/net.pb.h"

namespace crema {

// One line with the first such layer's position, by `where` if it is given, and their number; "" when
// no layer asks for cuDNN.
std::string note_on_cudnn_engine(const NetParameter& net,
                                 const std::function<std::string(int layer)>& where = {});

}  // namespace crema
