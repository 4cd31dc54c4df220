#include "tools/pages/run_texts.h"

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/net_input.h"
#include "solver/run_identity.h"
#include "solver/solver_nets.h"
#include "tools/pages/net_drawing.h"

namespace crema {

namespace {

constexpr size_t kLongest = size_t{4} << 20;

std::string text_of_file(const std::string& path) {
  try {
    return file_exists(path) ? read_text(path, kLongest) : "";
  } catch (const Error&) {  // a page shows what can be read
    return "";
  }
}

}  // namespace

RunTexts texts_in(const std::string& folder) {
  RunTexts texts{.solver = text_of_file(folder + "/solver.prototxt")};
  for (const char* name : {"/train_val.prototxt", "/train.prototxt"}) {
    texts.net_file = folder + name;
    texts.net = text_of_file(texts.net_file);
    if (!texts.net.empty()) return texts;
  }
  texts.net_file.clear();
  return texts;
}

RunTexts texts_of(const Run& run, const std::string& folder) {
  if (file_exists(folder + "/run.json")) return texts_in(folder);
  RunTexts texts;
  const std::string solver = run.identity("solver_file");
  try {
    if (!file_exists(solver)) return texts;
    const SolverFile file = read_solver_file(solver);
    const NetFile net = open_net(file, train_source(file));
    if (hash_of_text(net.net) == run.identity("net_text") && file_exists(net.path)) {
      texts.net = text_of_file(net.path);
      texts.net_file = net.path;
    }
    if (hash_of_recipe(net.net, file.solver) == run.identity("recipe"))
      texts.solver = text_of_file(solver);
  } catch (const Error&) {  // files of today that are wrong say nothing of the run
  }
  return texts;
}

std::string drawing_of(const std::string& net_file, Log& log) {
  if (net_file.empty()) return "";
  try {
    return net_svg(read_net_input(net_file, TRAIN, {}, silent_log()), net_file, log);
  } catch (const Error& error) {
    log.warning(cat("The net is not drawn: ", error.what()));
    return "";
  }
}

}  // namespace crema
