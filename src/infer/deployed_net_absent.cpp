// In place of crema/deployed_net.cpp: libcrema_infer has no layers for data and losses, from which a
// net for use could be made.
#include "base/error.h"
#include "crema/deployed_net.h"

namespace crema {

void make_deployed(NetInput*, const ModelOptions&, Log&) {
  fail("libcrema_infer takes nets for use only: write one with `crema deploy`");
}

}  // namespace crema
