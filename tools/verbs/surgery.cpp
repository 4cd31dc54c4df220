// `crema surgery -model NET.prototxt [-weights FILE] -output NET.prototxt [-output_weights FILE]`:
// writes the net for use with convolutions in place of fully connected layers, and their weights.
#include "net/surgery/surgery.h"

#include <iostream>

#include "base/files.h"
#include "base/visible.h"
#include "net/weights/weights.h"
#include "tools/classify/deployed_model.h"
#include "tools/devices.h"
#include "tools/flags/image_flags.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/verb.h"

namespace crema {

namespace {

using SurgeryFlags = FlagsOf<"model", "output", "weights", "output_weights", "weights_mode",
                             "resize", "batch", "assume", "phase", "level", "stage", "set">;

void check_surgery_flags(const SurgeryFlags& flags) {
  require(flags.batch >= 0, "-batch ", flags.batch, ": expected a positive number");
  require(flags.weights.empty() || !flags.output_weights.empty(), "-weights ", flags.weights,
          ": -output_weights FILE.caffemodel is missing, for the reshaped weights");
  require(flags.output_weights.empty() || !flags.weights.empty(), "-output_weights ",
          flags.output_weights, ": -weights FILE.caffemodel is missing");
  require_apart({{"-output", flags.output}, {"-output_weights", flags.output_weights}},
                files_read(flags.model, flags.weights));
}

// The size of -resize for each input that takes images, of which nothing is cropped any more.
void set_image_size(const std::string& resize, Surgery* surgery, NetPreparation* preparation) {
  const PictureSize size = picture_size(resize, "-resize");
  for (LayerParameter& layer : *surgery->net.mutable_layer()) {
    if (layer.type() != "Input") continue;
    for (BlobShape& shape : *layer.mutable_input_param()->mutable_shape()) {
      if (shape.dim_size() != 4) continue;
      surgery->changes.push_back(cat(layer.name(), ": images of ", size.width, "x", size.height,
                                     " in place of ", shape.dim(3), "x", shape.dim(2)));
      shape.set_dim(2, size.height);
      shape.set_dim(3, size.width);
    }
  }
  for (InputPreparation& input : *preparation->mutable_input()) {
    input.clear_short_side();
    input.set_resize_height(static_cast<uint32_t>(size.height));
    input.set_resize_width(static_cast<uint32_t>(size.width));
    if (!input.has_transform_param()) continue;
    TransformationParameter& transform = *input.mutable_transform_param();
    transform.clear_crop_size();
    transform.clear_crop_h();
    transform.clear_crop_w();
    transform.clear_crop_height();
    transform.clear_crop_width();
    transform.clear_resize_param();
    if (transform.ByteSizeLong() == 0) input.clear_transform_param();
  }
}

int run_surgery(const VerbCall& call, const SurgeryFlags& flags) {
  check_surgery_flags(flags);
  const std::unique_ptr<Context> context = make_context(call.log, {});
  const NetInput input = read_net(call.log, flags, phase_of_flag(flags.phase, TEST));
  DeployedNet deployed = deploy_model(
      call.log, DeployFlags::without<"labels", "mean", "scale", "rgb">(flags), input, flags.batch);
  NetOptions options = input.options;
  options.where = [&](int i) { return input.options.where(deployed.origins[i]); };
  Net given(*context, deployed.net, options);
  Surgery surgery = make_fully_convolutional(deployed.net, given.graph(), options.where);
  if (!flags.resize.empty()) set_image_size(flags.resize, &surgery, &deployed.preparation);

  options.where = [&](int i) { return input.options.where(deployed.origins[surgery.origins[i]]); };
  // Fails here, before anything is written, when a layer cannot take the new shapes.
  Net made(*context, surgery.net, options);
  if (!flags.weights.empty()) {
    load_weights_of_flags(flags, given);
    copy_weights(given, made, surgery.transposed);
  }
  const auto write_weights = [&] {
    if (!flags.weights.empty()) save_caffemodel(made, flags.output_weights);
  };
  for (const std::string& change : surgery.changes) call.log.info(change);
  for (const std::string& warning : surgery.warnings) call.log.warning(warning);
  for (const Net::Output& output : made.outputs())
    call.log.info(cat("Output ", output.blob, ": ", output.value.shape().brief()));

  deployed.notes.insert(deployed.notes.end(), surgery.changes.begin(), surgery.changes.end());
  const std::string text =
      cat("# The net of ", visible(flags.model), " as convolutions, written by crema surgery.\n") +
      text_of({surgery.net, {}, deployed.preparation, {}, deployed.notes},
              flags.output.empty() ? "." : folder_of(flags.output));
  if (flags.output.empty()) {
    write_weights();
    std::cout << text << std::flush;
  } else {
    write_with_weights(flags.output, text, write_weights);
    call.log.info("Wrote " + flags.output);
  }
  if (!flags.output_weights.empty()) call.log.info("Wrote " + flags.output_weights);
  return 0;
}

REGISTER_VERB(surgery,
              {.summary = "makes a net fully convolutional, and reshapes its weights",
               .usage = "-model NET.prototxt -output NET.prototxt [-weights FILE -output_weights "
                        "FILE] [flags]",
               .example = "crema surgery -model models/lenet/digits_train_val.prototxt -weights "
                          "models/lenet/lenet_digits_iter_1500.caffemodel -output full.prototxt "
                          "-output_weights full.caffemodel -resize 64x64",
               .meanings = {{"weights", "The trained weights to reshape."},
                            {"output", "The net to write. Empty: the standard output."},
                            {"resize",
                             "The input size of the written net, such as 512x512 (width x height). "
                             "Empty: that of the net."},
                            {"batch", "The batch size of the written net. 0: one."}},
               .log = LogStyle::brief,
               .run = run_surgery});

}  // namespace

}  // namespace crema
