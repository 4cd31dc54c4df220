// `crema export -model NET.prototxt -weights FILES -output NET.onnx`: writes a net for other programs,
// and shows that they compute the same.
#include "exchange/onnx/export.h"

#include "base/files.h"
#include "base/strings.h"
#include "base/visible.h"
#include "data/databases/class_names.h"
#include "exchange/cut.h"
#include "exchange/onnx/metadata.h"
#include "tools/classify/deployed_model.h"
#include "tools/exchange/export_c.h"
#include "tools/exchange/export_caffe.h"
#include "tools/exchange/verification_report.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/verb.h"

namespace crema {

namespace {

// The format of a file ends here: lengths in it are signed 32-bit numbers.
constexpr size_t kMaxModel = (size_t{1} << 31) - 1;

using ExportFlags =
    FlagsOf<"model", "weights", "weights_mode", "output", "to", "dialect", "output_weights", "main",
            "ram", "flash", "train", "train_batch", "solver", "opset", "fold", "cut", "preprocess",
            "batch", "verify", "python", "tolerance", "proof", "assume", "phase", "level", "stage",
            "set", "resize", "mean", "scale", "rgb", "labels">;

OnnxOptions options_of(const ExportFlags& flags) {
  OnnxOptions options;
  options.opset = flags.opset;
  options.fold = flags.fold;
  options.any_batch = flags.batch == 0;
  return options;
}

PictureInputs pictures_of(const ExportFlags& flags, const DeployedNet& deployed, Net& net,
                          const std::string& folder) {
  PictureInputs pictures;
  if (flags.preprocess.empty()) return pictures;
  require(flags.preprocess == "inside" || flags.preprocess == "resized", "-preprocess ",
          flags.preprocess, ": expected inside or resized");
  for (const InputPreparation& input : deployed.preparation.input())
    pictures.emplace(input.name(), picture_input(input, net.input(input.name()).shape(),
                                                 flags.preprocess == "inside", folder));
  require(!pictures.empty(), "-preprocess ", flags.preprocess, ": ", flags.model,
          " does not say how its inputs are made of pictures; -mean, -scale and -resize say it");
  return pictures;
}

// Runtimes give only outputs, so all values become some.
ComparedModel compared_with(const OnnxModel& exported, const PictureInputs& pictures) {
  ComparedModel compared;
  compared.pictures = pictures;
  onnx::ModelProto model = exported.model;
  onnx::GraphProto* const graph = model.mutable_graph();
  for (const onnx::ValueInfoProto& value : graph->value_info()) *graph->add_output() = value;
  graph->clear_value_info();
  compared.bytes = model.SerializeAsString();
  compared.values = exported.values;
  return compared;
}

void cut(const std::string& before, DeployedNet* deployed) {
  const std::vector<int> left =
      cut_before(&deployed->net,
                 before == "before_nms" ? layers_that_select(deployed->net) : split(before, ','));
  std::vector<int> origins;
  for (const int layer : left) origins.push_back(deployed->origins[layer]);
  deployed->origins = std::move(origins);
}

// A file that the net names may be gone; one that the user names must be there.
std::vector<std::string> names_of_classes(const ExportFlags& flags, const DeployedNet& deployed) {
  const std::string& path = deployed.preparation.labels();
  if (path.empty() || (flags.labels.empty() && !file_exists(path))) return {};
  return read_class_names(path).names;
}

int run_export(const VerbCall& call, const ExportFlags& flags) {
  const bool to_caffe = is_caffe_export(flags);
  const bool to_c = flags.to == "c";
  require(!flags.output.empty(), "-output ", to_c ? "NET.c" : "NET.onnx",
          " is needed: the file to write");
  if (to_c) check_c_export_flags(flags);
  require(to_c || (!flags.main && flags.ram.empty() && flags.flash.empty() && !flags.train &&
                   flags.train_batch == 0 && flags.solver.empty()),
          "-main, -ram, -flash, -train, -train_batch and -solver are for -to c");
  require(to_caffe || !ends_with(flags.output, ".prototxt"), "-output ", flags.output,
          ": this would be an ONNX model; -to caffe writes a prototxt file");
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(!to_caffe || flags.preprocess.empty(),
          "-preprocess writes operators of ONNX; Caffe's files have no layers for pictures");
  require(!to_c || flags.preprocess.empty(),
          "-preprocess writes operators of ONNX; -main writes C that prepares pictures");
  require(flags.verify || flags.proof.empty(),
          "-proof keeps what -verify finds; -verify=false leaves nothing to keep");
  require(flags.batch >= 0, "-batch ", flags.batch, ": expected a positive number");
  require_apart({{"-output", flags.output}, {"-output_weights", flags.output_weights}},
                files_read(flags.model, flags.weights));
  check_verification_flags(flags);
  ir_version_of(flags.opset);
  if (!flags.labels.empty()) read_class_names(flags.labels);  // refuses what is no such file
  Context context(Device::cpu);
  context.set_log(call.log.library());
  NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  DeployedNet deployed =
      deploy_model(call.log, flags, input, to_c && flags.batch == 0 ? 1 : flags.batch);
  if (!flags.cut.empty()) cut(flags.cut, &deployed);
  input.options.where = [&deployed, where = input.options.where](int i) {
    return where(deployed.origins[i]);
  };
  input.options.state.set_phase(TEST);  // whatever phase its layers are from
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  input.options.weights_follow = !flags.weights.empty();
  Net net(context, deployed.net, input.options);
  load_weights_of_flags(flags, net);
  if (to_caffe) return export_caffe_files(net, deployed, flags, call.log);
  if (to_c) {
    std::optional<CTrainingNet> training;
    if (flags.train) training = read_training_net(call.log, flags, flags.train_batch, context);
    return export_c_files(net, deployed, names_of_classes(flags, deployed), input.options.folder,
                          training ? &*training : nullptr, flags, call.log);
  }
  const PictureInputs pictures = pictures_of(flags, deployed, net, input.options.folder);
  OnnxModel exported = export_onnx(net, options_of(flags), pictures);
  exported.model.set_producer_version(CREMA_VERSION);
  add_metadata(deployed.preparation, names_of_classes(flags, deployed), pictures, &exported.model);
  for (const std::string& note : exported.notes) call.log.warning(note);
  require(exported.model.ByteSizeLong() <= kMaxModel, flags.output, ": the model has ",
          exported.model.ByteSizeLong(), " bytes, and a file of this format ends at 2 GiB");
  write_file_atomically(flags.output, exported.model.SerializeAsString());
  call.log.info(cat("Wrote ", visible(flags.output), ": opset ", flags.opset, ", ",
                    exported.model.graph().node_size(), " operators"));
  if (flags.verify)
    report_verification(net, compared_with(exported, pictures), flags, ". The model was written",
                        call.log);
  return 0;
}

REGISTER_VERB(
    export,
    {.summary = "writes a net for other programs (ONNX, Caffe, C), and verifies it",
     .usage = "-model NET.prototxt -weights FILES -output NET.onnx [flags]",
     .example = "crema export -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet.onnx\n"
                "crema export -to caffe -dialect bvlc -model "
                "models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet.prototxt "
                "-output_weights lenet.caffemodel\n"
                "crema export -to c -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet.c -main\n"
                "crema export -to c -train -solver models/lenet/digits_solver.prototxt -model "
                "models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -output lenet.c",
     .meanings =
         {{"output", "The file to write. With -to c, NET.c; the header becomes NET.h."},
          {"output_weights",
           "The file for the weights, which -to caffe needs. With -to c: a binary file instead of "
           "constants in NET.c, which the caller passes to the net."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"batch", "The batch size of the model. 0: any, or 1 with -to c."},
          {"verify",
           "Runs the model with random inputs in each runtime that -python has, or compiles the "
           "files of -to c with $CC or cc and runs them, and compares."},
          {"scale",
           "The factor for values after the mean, such as 0.00390625, to record in the "
           "file. Empty: what the net says."},
          {"rgb", "Records in the file that the input's planes are R, G, B; otherwise B, G, R."},
          {"labels",
           "The class names to record in the file: a text file, one per line. Empty: those "
           "in the database."}},
     .log = LogStyle::brief,
     .run = run_export});

}  // namespace

}  // namespace crema
