#include "solver/compression/compressed_net.h"

#include "solver/compression/compression_fields.h"
#include "solver/compression/distillation.h"
#include "solver/compression/rounding.h"

namespace crema {

void add_compression(Context& context, const SolverFile& file, NetFile* net, NetOptions* options) {
  check_compression(file);
  if (file.solver.has_teacher()) Distillation(context, file).add_to(net, options);
  if (file.solver.has_quantize()) Rounding(file).add_to(net, options);
}

}  // namespace crema
