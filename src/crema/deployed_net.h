// ModelOptions::deploy. libcrema_infer has another implementation, which refuses.
#pragma once

#include "crema.h"
#include "net/prototxt/net_input.h"

namespace crema {

// Makes a net for use of one that is trained.
void make_deployed(NetInput* input, const ModelOptions& options, Log& log);

}  // namespace crema
