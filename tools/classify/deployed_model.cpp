#include "tools/classify/deployed_model.h"

#include <algorithm>

#include "base/strings.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "net/deploy/training_net.h"
#include "net/weights/weights_hdf5.h"
#include "net/weights/wire_reader.h"
#include "tools/flags/image_flags.h"

namespace crema {

namespace {

// Shapes of the first blob of each layer in -weights.
WeightShapes shapes_of_weights(const std::string& files) {
  WeightShapes shapes;
  const auto add = [&](const StoredLayer& layer) {
    if (!layer.blobs.empty()) shapes.emplace(layer.name, Shape(layer.blobs[0].shape));
  };
  for (const std::string& path : split(files, ',')) {
    if (is_hdf5(path)) {
      read_hdf5_weights(path, add);
    } else {
      for (const StoredLayer& layer : read_caffemodel(path).layers) add(layer);
    }
  }
  return shapes;
}

DeployOptions options_of(const DeployFlags& flags, const NetInput& input, int batch) {
  DeployOptions options;
  options.batch = batch;
  options.assume = flags.assume;
  options.folder = input.options.folder;
  options.where = input.options.where;
  const std::vector<std::string> assumed = split(flags.assume, ',');
  if (std::find(assumed.begin(), assumed.end(), "default") != assumed.end())
    options.weights = shapes_of_weights(flags.weights);
  return options;
}

}  // namespace

DeployedNet training_model(const DeployFlags& flags, const NetInput& input, int batch) {
  return training_net(input.net, options_of(flags, input, batch));
}

DeployedNet deploy_model(ProgramLog& log, const DeployFlags& flags, const NetInput& input,
                         int batch) {
  DeployOptions options = options_of(flags, input, batch);
  options.preparation = input.preparation;
  options.change = [&flags](InputPreparation* preparation) {
    return change_preparation(picture_settings(flags), preparation);
  };
  DeployedNet deployed = deploy(input.net, options, log.library());
  for (const std::string& line : deployed.inputs) log.info(line);
  for (const std::string& line : deployed.notes) log.info(line);
  if (!flags.labels.empty()) deployed.preparation.set_labels(flags.labels);
  return deployed;
}

}  // namespace crema
