#include "tools/pages/runs/run_texts.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/message_text.h"
#include "net/graph/filter.h"
#include "net/prototxt/net_input.h"
#include "solver/events/run_identity.h"
#include "solver/fields/solver_nets.h"
#include "tools/pages/drawing/net_drawing.h"
#include "tools/pages/runs/run_file.h"

namespace crema {

namespace {

constexpr size_t kLongest = size_t{4} << 20;

// How many layers blobs pass between the layers that write and read them, in total: the layout's
// time grows with it. A long chain has one per layer, a net in which each layer reads all others
// millions.
size_t passed_layers(const NetParameter& net) {
  std::map<std::string, int> written;
  size_t passed = 0;
  for (int i = 0; i < net.layer_size(); ++i) {
    for (const std::string& bottom : net.layer(i).bottom()) {
      const auto at = written.find(bottom);
      if (at != written.end()) passed += static_cast<size_t>(i - at->second);
    }
    for (const std::string& top : net.layer(i).top()) written[top] = i;
  }
  return passed;
}

// A run's folder has its net as plain text, so nothing is included.
std::string drawing_of_text(const RunTexts& texts) {
  // Two or three seconds of layout.
  constexpr int kMostLayers = 2000;
  constexpr size_t kMostPassed = 30'000;
  NetParameter net;
  require(parse_message(texts.net, &net).empty(), texts.net_file, ": is not a net");
  require(net.layer_size() <= kMostLayers && passed_layers(net) <= kMostPassed, texts.net_file,
          ": is too large to be drawn, since others can write to it");
  net = filter_net(net, net_state(TRAIN, net, {}), silent_log());
  NetBoxes boxes = net_boxes(net, true);
  if (boxes.name.empty()) boxes.name = texts.net_file;
  return net_svg(boxes,
                 "Drawn without shapes, because others can write to the folder of this run: "
                 "creating its layers would open the files that it names.");
}

}  // namespace

RunTexts texts_in(const std::string& folder) {
  RunTexts texts{.solver = text_of_run_file(folder + "/solver.prototxt", kLongest)};
  for (const char* name : {"/train_val.prototxt", "/train.prototxt"}) {
    texts.net_file = folder + name;
    texts.net = text_of_run_file(texts.net_file, kLongest);
    texts.own = RunFile(texts.net_file).is_own();
    if (!texts.net.empty()) return texts;
  }
  texts.net_file.clear();
  return texts;
}

RunTexts texts_of(const Run& run, const std::string& folder) {
  if (is_run_file(folder + "/run.json")) return texts_in(folder);
  RunTexts texts;
  const std::string solver = run.identity("solver_file");
  try {
    if (!file_exists(solver)) return texts;
    const SolverFile file = read_solver_file(solver);
    const NetFile net = open_net(file, train_source(file));
    if (hash_of_text(net.net) == run.identity("net_text") && file_exists(net.path)) {
      texts.net = read_text(net.path, kLongest);
      texts.net_file = net.path;
      std::error_code none;  // an empty path then, which nobody owns
      texts.own = RunFile(std::filesystem::canonical(net.path, none).string()).is_own();
    }
    if (hash_of_recipe(net.net, file.solver) == run.identity("recipe"))
      texts.solver = read_text(solver, kLongest);
  } catch (const Error&) {  // files of today that are wrong say nothing of the run
  }
  return texts;
}

std::string drawing_of(const RunTexts& texts, Log& log) {
  if (texts.net_file.empty()) return "";
  try {
    if (!texts.own) return drawing_of_text(texts);
    return net_svg(read_net_input(texts.net_file, TRAIN, {}, silent_log()), texts.net_file, log);
  } catch (const Error& error) {
    log.warning(cat("The net is not drawn: ", error.what()));
    return "";
  }
}

}  // namespace crema
