#include "crema/deployed_net.h"

#include "crema/pictures.h"
#include "crema/setting_names.h"
#include "net/deploy/deploy.h"

namespace crema {

void make_deployed(NetInput* input, const ModelOptions& options, Log& log) {
  DeployOptions how;
  how.batch = options.batch;
  how.assume = options.assume;
  const SettingNames& names = setting_names();
  how.assume_setting = names.assume;
  how.assume_command = [&names](const std::string& shapes) {
    return cat(names.assume_begin, shapes, names.assume_end);
  };
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
