#include "tools/exchange/training_net.h"

#include "solver/fields/freeze.h"
#include "tools/classify/deployed_model.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/solver_flags.h"
#include "tools/runs/train_nets.h"

namespace crema {

CTrainingNet read_training_net(ProgramLog& log, const CTrainingNetFlags& flags, int batch,
                               Context& context) {
  CTrainingNet made;
  made.solver = read_solver(log, flags);
  NetInput input = read_net(log, flags, TRAIN);
  const DeployedNet deployed = training_model(
      DeployFlags::without<"labels", "resize", "mean", "scale", "rgb">(flags), input, batch);
  input.options.where = [origins = deployed.origins, where = input.options.where](int i) {
    return where(origins[i]);
  };
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  input.options.weights_follow = true;
  input.options.frozen = frozen_layers(made.solver);
  made.net = std::make_unique<Net>(context, deployed.net, input.options);
  check_frozen_layers(made.solver, *made.net);
  load_weights_of_flags(flags, *made.net);
  set_train_net(deployed.net, &made.solver);
  return made;
}

}  // namespace crema
