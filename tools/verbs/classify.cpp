// `crema classify -model NET.prototxt -weights FILE IMAGE|LIST.txt|FOLDER|DATABASE ...`: prints the
// most probable classes of images. A net that is trained is deployed in memory; images are prepared
// as its data layer does in phase TEST, for a net for use as the comments of its file say.
#include <algorithm>

#include "net/preparation.h"
#include "tools/classify/classifier.h"
#include "tools/classify/classify_inputs.h"
#include "tools/classify/deployed_model.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ClassifyFlags =
    FlagsOf<"model", "weights", "weights_mode", "labels", "top", "output", "blob", "batch",
            "resize", "mean", "scale", "rgb", "gpu", "phase", "level", "stage", "assume", "set",
            "precision", "implementation", "gpu_memory", "tune", "deterministic", "off">;

constexpr int64_t kUsualBatch = 32;

int batch_for(int batch, int64_t images) {
  require(batch >= 0, "-batch ", batch, ": expected a positive number");
  return batch > 0 ? batch : static_cast<int>(std::min(images, kUsualBatch));
}

// The root_folder of the net's lists of images.
std::string root_of(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer()) {
    if (!layer.image_data_param().root_folder().empty())
      return layer.image_data_param().root_folder();
  }
  return "";
}

// The index of the net's only Input layer, which takes images.
int find_input(const DeployedNet& deployed, const std::string& model) {
  std::vector<std::string> names;
  int found = -1;
  for (int i = 0; i < deployed.net.layer_size(); ++i) {
    const LayerParameter& layer = deployed.net.layer(i);
    if (layer.type() != "Input") continue;
    found = i;
    for (const std::string& top : layer.top()) names.push_back(top);
  }
  require(names.size() == 1, model, ": the net has ",
          names.empty() ? "no input" : "several inputs: " + join(names, ", "),
          "; classify fills one, with images");
  return found;
}

// Reports assumed defaults if neither a data layer nor the file defines the image preparation.
void say_assumed(const std::string& model, const InputPreparation& preparation, const Shape& shape,
                 ProgramLog& log) {
  const TransformationParameter& p = preparation.transform_param();
  const bool plain = p.scale() == 1 && p.mean_value_size() == 0 && !p.has_mean_file();
  const std::string text =
      cat(model, ": does not say how to prepare images; assuming ", describe(preparation, shape),
          plain ? "; values from 0 to 255" : "",
          ". -mean, -scale, -rgb and -resize change that, and `crema deploy` with these flags "
          "writes it into the file");
  if (plain) {
    log.warning(text);
  } else {
    log.info(text);
  }
}

int run_classify(const VerbCall& call, const ClassifyFlags& flags) {
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(flags.top > 0, "-top ", flags.top, ": expected a positive number");
  const std::unique_ptr<Context> context = make_context(call.log, flags);
  const Precision precision = precision_of_flag(*context, flags.precision);
  log_device(call.log, flags, *context, precision);
  NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  const std::string& folder = input.options.folder;
  const std::vector<ImageSource> sources = sources_of(call.arguments, root_of(input.net), folder);
  int64_t images = 0;
  size_t width = 0;
  for (const ImageSource& source : sources) {
    images += source.size();
    for (int64_t i = 0; i < (source.database ? 1 : source.size()); ++i)
      width = std::max(width, source.name(i).size());
  }

  const DeployedNet deployed = deploy_model(call.log, flags, input, batch_for(flags.batch, images));
  const int layer = find_input(deployed, flags.model);
  const std::string blob = deployed.net.layer(layer).top(0);
  const LayerParameter source = input.net.layer(deployed.origins[layer]);
  input.options.where = [&deployed, where = input.options.where](int i) {
    return where(deployed.origins[i]);
  };
  input.options.precision = precision;
  input.options.keep_blobs = !flags.blob.empty();
  set_passes(PassFlags::without<"recompute">(flags), &input.options);
  // Transforming the weights takes as long as it saves on a few images.
  constexpr int64_t kFewImages = 3;
  input.options.pack = images > kFewImages;
  input.options.weights_follow = true;
  Net net(*context, deployed.net, input.options);
  const Shape shape = net.input(blob).shape();
  require(shape.axes() == 4, input.options.where(layer), ": the input \"", blob, "\" is ",
          shape.brief(), ", not images (samples x channels x height x width)");
  const InputPreparation* known = find_preparation(deployed.preparation, blob);
  const InputPreparation how = known ? *known : assumed_preparation(blob, shape);
  if (!find_preparation(input.preparation, blob) && (!known || source.type() == "Input"))
    say_assumed(flags.model, how, shape, call.log);
  const PicturePreparation preparation =
      prepare_pictures(how, folder, {shape[1], shape[2], shape[3]}, !flags.resize.empty(),
                       {"-resize WIDTHxHEIGHT", "-assume"}, call.log);
  const ScoreBlob scores = find_scores(net, flags.blob, shape[0], "-blob");
  ClassReport report(scores.classes,
                     class_names(deployed.preparation.labels(), !flags.labels.empty(),
                                 scores.classes, "-labels FILE", call.log),
                     flags.top, flags.output);
  load_weights_of_flags(flags, net);

  report.begin(width);
  Classifier classifier(net, blob, scores, report, call.log);
  for (const ImageSource& each : sources) classifier.run(each, preparation);
  report.finish(call.log);
  if (images > 1)
    call.log.info(cat("Classified ", images - classifier.failed(), " of ", images, " images"));
  return classifier.failed() > 0 ? 1 : 0;
}

REGISTER_VERB(
    classify,
    {.summary = "prints the most probable classes of images",
     .usage = "-model NET.prototxt -weights FILE [flags] IMAGE|LIST.txt|FOLDER|DATABASE ...",
     .example = "crema classify -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -top 3 digit.png",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"batch", "The number of images per batch. 0: all, but at most 32."},
          {"output", "Writes the classes of all images to this CSV file. Empty: prints lines."},
          {"rgb",
           "The net was trained on planes in the order R, G, B, as convert_cifar_data stores them; "
           "otherwise B, G, R, as convert_imageset does. Databases are read unchanged."},
          {"scale",
           "The factor for values after the mean, such as 0.00390625. Empty: what the net says."}},
     .min_arguments = 1,
     .max_arguments = SIZE_MAX,
     .log = LogStyle::brief,
     .run = run_classify});

}  // namespace
}  // namespace crema
