#include "tools/exchange/export_caffe.h"

#include <filesystem>

#include "base/files.h"
#include "base/visible.h"
#include "exchange/caffe/export.h"
#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "tools/exchange/verification_report.h"
#include "tools/flags/output_files.h"

namespace crema {

namespace {

// The files as anyone reads them.
void verify_files(Net& net, const CaffeModel& model, const CaffeExportFlags& flags,
                  ProgramLog& log) {
  NetInput input = read_net_input(flags.output, TEST, {}, log.library());
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  Net again(net.context(), input.net, input.options);
  if (!again.parameters().empty()) load_weights(again, flags.output_weights, {.table = false});
  ComparedModel compared;
  compared.path = std::filesystem::absolute(flags.output).string();
  compared.weights = std::filesystem::absolute(flags.output_weights).string();
  for (const auto& [id, top] : model.values) {
    if (top.index > 0) continue;  // OpenCV and ncnn give the first top of a layer
    compared.values[id] = top.blob;
    compared.makers[id] = top.layer;
  }
  report_caffe_verification(net, again, compared, flags, flags.dialect, log);
}

}  // namespace

bool is_caffe_export(const CaffeExportFlags& flags) {
  require(flags.to == "onnx" || flags.to == "caffe" || flags.to == "c", "-to ", flags.to,
          ": expected onnx, caffe or c");
  if (flags.to != "caffe") {
    require(!flags.dialect_given, "-dialect is for -to caffe");
    require(flags.to == "onnx" || !flags.opset_given, "-opset is for -to onnx");
    require(flags.to == "c" || flags.output_weights.empty(),
            "-output_weights is for -to caffe: an ONNX model has ", "its weights in it");
    return false;
  }
  find_dialect(flags.dialect, "-dialect");
  require(!flags.opset_given, "-opset is for -to onnx");
  require(!flags.output.empty(), "-output NET.prototxt is needed: the net to write");
  require(!flags.output_weights.empty(),
          "-output_weights NET.caffemodel is needed: the weights to write");
  return true;
}

int export_caffe_files(Net& net, const DeployedNet& deployed, const CaffeExportFlags& flags,
                       ProgramLog& log) {
  const Dialect& dialect = find_dialect(flags.dialect, "-dialect");
  CaffeModel model = export_caffe(net, dialect, {.fold = flags.fold});
  for (const CaffeChange& change : model.changes)
    log.info(cat(change.where, ": ", change.layer, ": ", change.text));
  DeployedNet written = deployed;
  written.net = model.net;
  write_with_weights(flags.output,
                     cat("# For ", dialect.about, ", written by crema export.\n",
                         text_of(written, folder_of(flags.output))),
                     [&] { write_caffe_weights(net.context(), model, flags.output_weights); });
  log.info(cat("Wrote ", visible(flags.output), ": ", model.net.layer_size(), " layers for ",
               dialect.about));
  log.info(cat("Wrote ", visible(flags.output_weights)));
  model.weights.clear();  // what folding changed
  if (flags.verify) verify_files(net, model, flags, log);
  return 0;
}

}  // namespace crema
