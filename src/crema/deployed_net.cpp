#include "crema/deployed_net.h"

#include "crema/pictures.h"
#include "net/deploy/deploy.h"

namespace crema {

void make_deployed(NetInput* input, const ModelOptions& options, Log& log) {
  DeployOptions how;
  how.batch = options.batch;
  how.assume = options.assume;
  how.assume_setting = "assume";
  how.assume_command = [](const std::string& shapes) { return cat("assume = \"", shapes, "\""); };
  how.folder = input->options.folder;
  how.where = input->options.where;
  how.preparation = input->preparation;
  how.change = [&options](InputPreparation* preparation) {
    return change_preparation(picture_settings(options.pictures), preparation);
  };
  const DeployedNet deployed = deploy(input->net, how, log);
  for (const std::string& line : deployed.inputs) log.info(line);
  for (const std::string& line : deployed.notes) log.info(line);
  input->net = deployed.net;
  input->preparation = deployed.preparation;
  input->options.where = [origins = deployed.origins, where = how.where](int layer) {
    return where(origins[layer]);
  };
}

}  // namespace crema
