#include "base/error.h"
#include "comm/nccl_engine.h"

namespace crema {

std::unique_ptr<Engine> make_nccl_engine(Context&, const NcclOptions&) {
  fail(
      "this build has no NCCL, which connects GPUs (it was made without nccl.h): run `bash "
      "data_scripts/setup.sh` and configure and build again, or start the ranks with mpirun");
}

bool has_nccl() { return false; }

}  // namespace crema
