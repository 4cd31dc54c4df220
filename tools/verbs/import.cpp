// `crema import MODEL.onnx -output NET.prototxt -output_weights NET.caffemodel`: makes a net of an
// ONNX model, and shows that it computes the same.
#include "exchange/onnx/import.h"

#include <filesystem>

#include "base/files.h"
#include "base/visible.h"
#include "exchange/onnx/training_text.h"
#include "exchange/repeats.h"
#include "net/net_text.h"
#include "net/prototxt/net_input.h"
#include "net/sources/assumed_shapes.h"
#include "net/weights/weights.h"
#include "tools/exchange/verification_report.h"
#include "tools/flags/flags_of.h"
#include "tools/flags/output_files.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ImportFlags = FlagsOf<"output", "output_weights", "head", "batch", "assume", "verify",
                            "python", "tolerance", "proof">;

ImportOptions options_of(const ImportFlags& flags) {
  ImportOptions options;
  if (flags.batch > 0) options.batch = flags.batch;
  const AssumedShapes assumed = parse_assumed_shapes(flags.assume, "-assume");
  require(!assumed.defaults, "-assume ", flags.assume,
          ": a model has no default shapes; name an input, such as data=1x3x224x224");
  options.shapes = assumed.of_top;
  return options;
}

// The files that were written, as anyone reads them; of a net for training only the weights, because
// its databases may not be there.
void verify_files(Context& context, const OnnxFile& file, const ImportedNet& imported,
                  const ImportFlags& flags, ProgramLog& log) {
  NetInput input;
  if (flags.head.empty()) {
    input = read_net_input(flags.output, TEST, {}, log.library());
  } else {
    input.net = imported.net;
    input.options.state.set_phase(TEST);
    input.options.where = [&imported](int i) { return imported.net.layer(i).name(); };
  }
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  Net net(context, input.net, input.options);
  if (!net.parameters().empty()) load_weights(net, flags.output_weights, {.table = false});
  ComparedModel compared;
  compared.path = std::filesystem::absolute(file.path).string();
  for (const onnx::ValueInfoProto& input : file.graph.input())
    if (input.type().tensor_type().elem_type() == onnx::TensorProto::UINT8)
      compared.bytes_of.insert(input.name());
  std::map<std::string, std::string> names;
  for (const auto& [name, blob] : imported.outputs) names[blob] = name;
  const std::vector<Value>& values = net.graph().values;
  for (size_t id = 0; id < values.size(); ++id)
    if (const auto found = names.find(values[id].blob); found != names.end())
      compared.values[static_cast<int>(id)] = found->second;
  report_verification(net, compared, flags, ". The net and its weights were written", log);
}

int run_import(const VerbCall& call, const ImportFlags& flags) {
  require(call.arguments.size() == 1, "the model is missing: crema import MODEL.onnx -output ",
          "NET.prototxt -output_weights NET.caffemodel");
  require(!flags.output.empty(), "-output NET.prototxt is needed: the net to write");
  require(!flags.output_weights.empty(),
          "-output_weights NET.caffemodel is needed: the weights to write");
  require_apart({{"-output", flags.output}, {"-output_weights", flags.output_weights}},
                {{"the model", call.arguments[0]}});
  require(flags.head.empty() || flags.head == "softmax", "-head ", flags.head,
          ": expected softmax, the loss for classification");
  require(flags.verify || flags.proof.empty(),
          "-proof keeps what -verify finds; -verify=false leaves nothing to keep");
  check_verification_flags(flags);
  require(flags.batch >= 0, "-batch ", flags.batch, ": expected a positive number");
  Context context(Device::cpu);
  context.set_log(call.log.library());
  const OnnxFile file = read_onnx(call.arguments[0]);
  const ImportedNet imported = import_onnx(context, file, options_of(flags));
  const std::string plain =
      flags.head.empty() ? net_text(imported.net) : training_text(imported, file);
  const std::string text = with_repeats(with_node_names(plain, imported));
  NetOptions options;
  options.state.set_phase(TEST);
  const std::string name = std::filesystem::path(file.path).filename().string();
  write_with_weights(
      flags.output,
      cat("# Imported from ", visible(name), " (opset ", file.opset, ") by crema import.\n", text),
      [&] {
        Net net(context, imported.net, options);
        set_imported_weights(imported, &net);
        save_caffemodel(net, flags.output_weights);
      });
  for (const std::string& note : imported.notes) call.log.warning(note);
  call.log.info(cat("Wrote ", visible(flags.output), ": ", imported.net.layer_size(), " layers of ",
                    file.graph.node_size(), " operators"));
  call.log.info(cat("Wrote ", visible(flags.output_weights)));
  if (flags.verify) verify_files(context, file, imported, flags, call.log);
  return 0;
}

REGISTER_VERB(
    import,
    {.summary = "makes a net and its weights from an ONNX model, and verifies them",
     .usage = "MODEL.onnx -output NET.prototxt -output_weights NET.caffemodel [flags]",
     .example = "crema import lenet.onnx -output lenet.prototxt -output_weights lenet.caffemodel",
     .meanings = {{"output", "The net to write: a prototxt file."},
                  {"output_weights", "The weights to write: a .caffemodel."},
                  {"batch", "The batch size of the net, if the model leaves it open. 0: one."},
                  {"assume",
                   "The shapes of inputs that the model leaves open, such as "
                   "data=1x3x224x224."}},
     .max_arguments = 1,
     .log = LogStyle::brief,
     .run = run_import});

}  // namespace

}  // namespace crema
