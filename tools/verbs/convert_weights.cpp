// `crema convert_weights -model NET.prototxt -from WEIGHTS`: PyTorch's weights, a safetensors file or a
// state dict (.pth), as a .caffemodel of a net here.
#include <algorithm>
#include <iostream>

#include "base/files.h"
#include "net/prototxt/settings.h"
#include "net/weights/torch_weights.h"
#include "net/weights/weights.h"
#include "tools/classify/deployed_model.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ConvertWeightsFlags =
    FlagsOf<"model", "from", "names", "output", "assume", "phase", "level", "stage", "set">;

// -names, else torchvision.names next to the net, else "".
std::string names_file(const ConvertWeightsFlags& flags, const std::string& folder) {
  if (!flags.names.empty()) return flags.names;
  const std::string usual = folder + "/torchvision.names";
  return file_exists(usual) ? usual : "";
}

// -output, else the name of -from with another suffix.
std::string output_file(const ConvertWeightsFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  std::string stem = flags.from;
  for (const std::string suffix : {".safetensors", ".pth", ".pt"}) {
    if (ends_with(flags.from, suffix)) stem.resize(flags.from.size() - suffix.size());
  }
  return stem + ".caffemodel";
}

// What the net's data layer does to three channels.
TorchInput input_of(const NetInput& input, const std::string& model) {
  for (int i = 0; i < input.net.layer_size(); ++i) {
    const LayerParameter& layer = input.net.layer(i);
    if (!layer.has_transform_param() || layer.top_size() == 0) continue;
    const TransformationParameter& transform = layer.transform_param();
    TorchInput found{layer.top(0),
                     {transform.mean_value().begin(), transform.mean_value().end()},
                     transform.scale(),
                     input.options.where(i)};
    require(!transform.has_mean_file(), found.where, ": layer \"", layer.name(),
            "\" subtracts a mean image; PyTorch's weights need one mean per channel: mean_value");
    require(found.scale != 0, found.where, ": layer \"", layer.name(), "\" has scale 0");
    if (found.mean.size() <= 1) found.mean.resize(3, found.mean.empty() ? 0 : found.mean[0]);
    require(found.mean.size() == 3, found.where, ": layer \"", layer.name(), "\" has ",
            found.mean.size(), " mean_value; expected one, or three for B, G, R");
    return found;
  }
  fail(model,
       ": no data layer with transform_param says what the net does to pixels; give the training "
       "net (train_val.prototxt), or a map (-names) without mean and std, which takes weights as "
       "they are");
}

void print_report(const TorchReport& report) {
  std::vector<std::vector<std::string>> rows{{"tensor", "blob", "shape"}};
  for (const TorchReport::Row& row : report.rows) rows.push_back({row.from, row.to, row.shape});
  print_table(rows, 2);
  std::cout << std::flush;
}

int run_convert_weights(const VerbCall& call, const ConvertWeightsFlags& flags) {
  require(!flags.from.empty(), "weights are needed: -from WEIGHTS.safetensors or WEIGHTS.pth");
  const std::unique_ptr<Context> context = make_context(call.log, {});
  NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  const std::string map = names_file(flags, input.options.folder);
  const std::unique_ptr<TensorFile> file = open_tensor_file(flags.from);
  const DeployedNet deployed = deploy_model(
      call.log, DeployFlags::without<"weights", "labels", "resize", "mean", "scale", "rgb">(flags),
      input, 1);
  NetOptions options = input.options;
  options.where = [&](int i) { return input.options.where(deployed.origins[i]); };
  Net net(*context, deployed.net, options);
  const Settings settings(flags.set);
  const WeightNames names =
      map.empty() ? own_names(net) : read_weight_names(map, settings.variables());
  std::optional<TorchInput> images;
  if (!names.mean.empty()) images = input_of(input, flags.model);
  const TorchReport report = load_torch_weights(net, *file, names, images);

  const std::string output = output_file(flags);
  save_caffemodel(net, output);
  print_report(report);
  call.log.info(map.empty() ? "Names are those of the net's layers" : "Names are from " + map);
  for (const std::string& note : report.notes) call.log.info(note);
  if (report.notes.empty())
    call.log.info("Weights are as PyTorch had them: the net expects the input that they had there");
  if (!report.unused.empty())
    call.log.info(cat("Left out: ", report.unused.size(), " counters (num_batches_tracked)"));
  call.log.info(cat("Wrote ", report.rows.size(), " tensors to ", output));
  return 0;
}

REGISTER_VERB(
    convert_weights,
    {.summary = "writes PyTorch's weights (.safetensors, .pth) as a .caffemodel",
     .usage = "-model NET.prototxt -from WEIGHTS [-names MAP] [flags]",
     .example =
         "crema convert_weights -model models/vgg/train_val.prototxt -from vgg16-397923af.pth",
     .meanings = {{"output",
                   "The file to write. Empty: the name of -from with the suffix .caffemodel."}},
     .log = LogStyle::brief,
     .run = run_convert_weights});

}  // namespace
}  // namespace crema
