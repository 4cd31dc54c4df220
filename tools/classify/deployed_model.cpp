#include "tools/classify/deployed_model.h"

#include "tools/flags.h"

namespace crema {

DeployedNet deploy_model(ProgramLog& log, const NetInput& input, int batch) {
  DeployOptions options;
  options.batch = batch;
  options.assume = FLAGS_assume;
  options.folder = input.options.folder;
  options.where = input.options.where;
  return deploy(input.net, options, log);
}

}  // namespace crema
