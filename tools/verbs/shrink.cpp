// `crema shrink -model NET.prototxt -weights FILE -output FOLDER`: removes channels that are always 0.
#include "net/surgery/shrink.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/visible.h"
#include "net/graph/filter.h"
#include "net/net_text.h"
#include "net/preparation.h"
#include "net/weights/weights.h"
#include "tools/console/table.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/output_files.h"
#include "tools/measure/net_size.h"
#include "tools/quantize/calibration_feed.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ShrinkFlags = FlagsOf<"model", "weights", "weights_mode", "output", "gpu", "implementation",
                            "gpu_memory", "tune", "deterministic", "off", "level", "stage", "set">;

// The largest difference of the results of one pass, as a share of the largest result.
double difference(Net& a, Net& b) {
  double most = 0, largest = 0;
  const std::vector<Net::Output> of_a = a.outputs(), of_b = b.outputs();
  for (size_t i = 0; i < of_a.size(); ++i) {
    const std::vector<double> x = to_doubles(a.context(), of_a[i].value),
                              y = to_doubles(b.context(), of_b[i].value);
    for (size_t k = 0; k < x.size(); ++k) {
      most = std::max(most, std::abs(x[k] - y[k]));
      largest = std::max(largest, std::abs(x[k]));
    }
  }
  return largest > 0 ? most / largest : most;
}

void run_once(Net& net, const NetInput& input) {
  const auto sources = sources_of(net.graph());
  if (sources.empty())
    CalibrationFeed("random", input.preparation, input.options.folder).fill(net, 0);
  net.forward(0);
}

void print_changes(const ShrunkNet& shrunk) {
  std::vector<std::vector<std::string>> rows = {{"layer", "channels", "left"}};
  for (const ShrunkNet::Layer& layer : shrunk.layers)
    rows.push_back({layer.name, cat(layer.before), cat(layer.after)});
  print_table(rows, 1);
}

std::string size_of(const Graph& graph) {
  const std::vector<int64_t> work = multiply_adds_of(graph);
  return cat(grouped(parameters_of(graph)), " parameters, ",
             grouped(std::accumulate(work.begin(), work.end(), int64_t{0})), " multiply-adds");
}

int run_shrink(const VerbCall& call, const ShrinkFlags& flags) {
  require(!flags.model.empty(), "a net is needed: -model NET.prototxt");
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  require(!flags.output.empty(), "-output FOLDER is needed: for net.prototxt and net.caffemodel");
  const std::string text_path = flags.output + "/net.prototxt",
                    weights_path = flags.output + "/net.caffemodel";
  require_apart({{"-output", text_path}, {"-output", weights_path}},
                files_read(flags.model, flags.weights));
  const std::unique_ptr<Context> context = make_context(call.log, flags);
  context->set_log(call.log.library());
  NetInput input = read_net(call.log, flags, TEST);
  Settings set(flags.set);
  const NetFile file = read_net_file(flags.model, &set);
  Net net(*context, input.net, input.options);
  load_weights_of_flags(flags, net);
  const ShrunkNet shrunk = shrink(file.net, net);
  require(
      !shrunk.layers.empty(),
      "no layer has channels that could be removed: those of results and of inputs stay, and those "
      "that other layers than convolutions, InnerProduct, activations, BatchNorm, Scale, pooling, "
      "Eltwise and Concat read");
  if (std::all_of(shrunk.layers.begin(), shrunk.layers.end(),
                  [](const ShrunkNet::Layer& layer) { return layer.after == layer.before; }))
    call.log.warning(
        cat(visible(flags.weights),
            ": no channel is 0, so the net stays as it is; train with prune { } in the "
            "solver first"));
  NetOptions options = input.options;
  options.where = {};
  Net made(*context, filter_net(shrunk.net, options.state, silent_log()), options);
  set_weights(shrunk.weights, made);
  run_once(net, input);
  run_once(made, input);
  const double change = difference(net, made);
  require(change < 1e-3, "the smaller net gives other results, with a difference of ", change,
          " of the largest: this net is not as `shrink` takes it to be; please report it");
  print_changes(shrunk);
  call.log.answer(cat(size_of(net.graph()), " became ", size_of(made.graph())));
  std::error_code problem;
  std::filesystem::create_directories(flags.output, problem);
  require(!problem, "-output ", visible(flags.output), ": cannot be made: ", problem.message());
  write_with_weights(
      text_path,
      cat("# The net of ", visible(flags.model), " without channels that are 0, written by ",
          "crema shrink.\n", text_of(input.preparation, flags.output), net_text(shrunk.net)),
      [&] { save_caffemodel(made, weights_path); });
  call.log.info(cat("Wrote ", visible(text_path), " and ", visible(weights_path)));
  return 0;
}

REGISTER_VERB(shrink,
              {.summary = "removes the channels that pruning has left without weights",
               .usage = "-model NET.prototxt -weights FILE -output FOLDER [flags]",
               .example = "crema shrink -model models/lenet/digits_train_val.prototxt -weights "
                          "models/lenet/pruned_iter_400.caffemodel -output lenet_small",
               .meanings = {{"output", "The folder for net.prototxt and net.caffemodel."},
                            {"weights",
                             "Weights of a run with `prune` in its solver; separate several files "
                             "with commas."},
                            {"gpu", "The number of the GPU to run on. Empty: the CPU."}},
               .log = LogStyle::brief,
               .run = run_shrink});

}  // namespace

}  // namespace crema
