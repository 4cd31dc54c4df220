#include "device/range.h"

#ifdef CREMA_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace crema {

#ifdef CREMA_CUDA
Range::Range(const char* name) { nvtxRangePushA(name); }
Range::~Range() { nvtxRangePop(); }
#else
Range::Range(const char*) {}
Range::~Range() = default;
#endif

}  // namespace crema
