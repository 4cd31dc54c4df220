// `crema convert_weights -model NET.prototxt -from WEIGHTS`: PyTorch's weights, a safetensors file or a
// state dict (.pth), as a .caffemodel of a net here; with -weights, a net's weights for PyTorch. With
// -solver, too: the weights that a program of `crema export -to c -train` has stored.
#include <algorithm>
#include <iostream>

#include "base/files.h"
#include "base/visible.h"
#include "exchange/c/trained_weights.h"
#include "net/prototxt/settings.h"
#include "net/weights/torch_layout.h"
#include "net/weights/torch_weights.h"
#include "net/weights/weights.h"
#include "tools/classify/deployed_model.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/exchange/training_net.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ConvertWeightsFlags = FlagsOf<"model", "from", "solver", "weights", "weights_mode", "names",
                                    "output", "assume", "phase", "level", "stage", "set">;

// -names, else torchvision.names next to the net, else "".
std::string names_file(const ConvertWeightsFlags& flags, const std::string& folder) {
  if (!flags.names.empty()) return flags.names;
  const std::string usual = folder + "/torchvision.names";
  return file_exists(usual) ? usual : "";
}

// -output, else the name of the weights with another suffix.
std::string output_file(const ConvertWeightsFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  const std::string& from = flags.from.empty() ? flags.weights : flags.from;
  std::string stem = from;
  for (const std::string suffix :
       {".safetensors", ".pth", ".pt", ".bin", ".caffemodel", ".caffemodel.h5"}) {
    if (ends_with(from, suffix)) stem.resize(from.size() - suffix.size());
  }
  return stem + (flags.from.empty() ? ".safetensors" : ".caffemodel");
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
  std::vector<std::vector<std::string>> rows{{"tensor", "parameter", "shape"}};
  for (const TorchReport::Row& row : report.rows) rows.push_back({row.from, row.to, row.shape});
  print_table(rows, 2);
  std::cout << std::flush;
}

// "53 counters (num_batches_tracked)", and what else a map leaves out.
std::string unused_text(const std::vector<std::string>& unused) {
  const auto counters = std::count_if(unused.begin(), unused.end(), [](const std::string& name) {
    return ends_with(name, "num_batches_tracked");
  });
  const auto others = static_cast<int64_t>(unused.size()) - counters;
  return cat(counters, " counters (num_batches_tracked)",
             others > 0 ? cat(" and ", others, " tensors that the map leaves out") : "");
}

void report_from_torch(const TorchReport& report, const std::string& output, ProgramLog& log) {
  for (const std::string& note : report.notes) log.info(note);
  if (report.notes.empty())
    log.info("The values are unchanged: prepare the net's input as in PyTorch");
  if (!report.unused.empty()) log.info(cat("Left out: ", unused_text(report.unused)));
  log.info(cat("Wrote ", report.rows.size(), " tensors to ", output));
}

void report_to_torch(const TorchReport& report, const std::string& output, ProgramLog& log) {
  for (const std::string& note : report.notes) log.info(note);
  if (report.notes.empty())
    log.info("The values are unchanged: prepare the input in PyTorch as for this net");
  if (!report.unused.empty())
    log.info(cat(report.unused.size(), " counters (num_batches_tracked) are 0"));
  log.info(cat("Wrote ", report.rows.size(), " tensors to ", output));
}

int run_convert_weights(const VerbCall& call, const ConvertWeightsFlags& flags) {
  require(!flags.from.empty() || !flags.weights.empty(),
          "weights are needed: -from WEIGHTS.safetensors or WEIGHTS.pth, or to write them for "
          "PyTorch -weights FILE.caffemodel");
  const bool from_c = !flags.solver.empty();
  require(!from_c || (!flags.from.empty() && !flags.weights.empty()),
          "-solver is for weights that a C program has trained: they are -from FILE, and -weights "
          "has those with which it was exported");
  require(!from_c || flags.names.empty(),
          "-names is for PyTorch's weights; with -solver, the net and the solver say whose the "
          "weights are");
  require(from_c || flags.from.empty() || flags.weights.empty(),
          "-from has PyTorch's weights, which become the net's, and -weights the net's, which "
          "become PyTorch's; give one of them, or the -solver of weights that a C program has "
          "trained");
  const bool to_torch = flags.from.empty();
  std::vector<FileOfFlag> read = files_read(flags.model, flags.weights);
  read.push_back({"-from", flags.from});
  const std::string output = output_file(flags);
  require(!to_torch || ends_with(output, ".safetensors"), "-output ", output,
          ": weights for PyTorch are written as .safetensors");
  require(to_torch || ends_with(output, ".caffemodel") || ends_with(output, ".caffemodel.h5"),
          "-output ", output, ": the net's weights are written as .caffemodel or .caffemodel.h5");
  require_apart({{"-output", output}}, read);
  const std::unique_ptr<Context> context = make_context(call.log, {});
  if (from_c) {
    const CTrainingNet training = read_training_net(call.log, flags, 0, *context);
    load_trained_weights(flags.from, *training.net);
    save_caffemodel(*training.net, output);
    call.log.info(cat("Wrote ", visible(output), ": ", visible(flags.weights), " with what ",
                      visible(flags.from), " has learned"));
    return 0;
  }
  NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  const std::string map = names_file(flags, input.options.folder);
  const std::unique_ptr<TensorFile> file =
      to_torch ? std::unique_ptr<TensorFile>() : open_tensor_file(flags.from);
  const DeployedNet deployed = deploy_model(
      call.log, DeployFlags::without<"labels", "resize", "mean", "scale", "rgb">(flags), input, 1);
  NetOptions options = input.options;
  options.where = [&](int i) { return input.options.where(deployed.origins[i]); };
  Net net(*context, deployed.net, options);
  if (to_torch) load_weights_of_flags(flags, net);
  const Settings settings(flags.set);
  const WeightNames names =
      map.empty() ? own_names(net) : read_weight_names(map, settings.variables());
  std::optional<TorchInput> images;
  if (!names.mean.empty()) images = input_of(input, flags.model);
  TorchReport report;
  if (to_torch) {
    report = save_torch_weights(net, names, images, output);
  } else {
    report = load_torch_weights(net, *file, names, images);
    save_caffemodel(net, output);
  }
  print_report(report);
  call.log.info(map.empty() ? "Names are those of the net's layers" : "Names are from " + map);
  to_torch ? report_to_torch(report, output, call.log)
           : report_from_torch(report, output, call.log);
  return 0;
}

REGISTER_VERB(
    convert_weights,
    {.summary = "converts weights between PyTorch (.safetensors, .pth), C programs and Crema",
     .usage = "-model NET.prototxt -from WEIGHTS | -weights FILE [-names MAP] [flags]",
     .example =
         "crema convert_weights -model models/vgg/train_val.prototxt -from vgg16-397923af.pth\n"
         "crema convert_weights -model models/vgg/train_val.prototxt -weights vgg16.caffemodel\n"
         "crema convert_weights -model models/lenet/digits_train_val.prototxt -solver "
         "models/lenet/digits_solver.prototxt -weights "
         "models/lenet/lenet_digits_iter_1500.caffemodel -from lenet_trained.bin",
     .meanings =
         {{"weights",
           "The net's weights (.caffemodel or .caffemodel.h5), to convert to PyTorch's or, "
           "with -solver, to replace by what was trained."},
          {"from",
           "The weights to convert: a safetensors file, a .pth that torch.save wrote or, with "
           "-solver, what a C program has stored."},
          {"solver",
           "The solver with which crema export -to c -train wrote the C program whose "
           "weights -from has."},
          {"output",
           "The file to write. Empty: the name of the weights with the suffix .caffemodel, "
           "or .safetensors for PyTorch."}},
     .log = LogStyle::brief,
     .run = run_convert_weights});

}  // namespace
}  // namespace crema
