#include "solver/fields/solver_nets.h"

#include "base/error.h"
#include "base/files.h"

namespace crema {
namespace {

std::string path_of(const SolverParameter& solver, const NetSource& source) {
  if (source.field == "net") return solver.net();
  if (source.field == "train_net") return solver.train_net();
  return source.field == "test_net" ? solver.test_net(source.index) : "";
}

// How many test nets there are, of which `named` have files or texts of their own.
int test_count(const SolverFile& file, int named, bool shared) {
  const SolverParameter& solver = file.solver;
  const int iters = solver.test_iter_size(), states = solver.test_state_size();
  if (!solver.test_epoch()) {
    require(iters >= named && (shared || iters == named),
            file.where(iters > 0 ? "test_iter" : "test_net"),
            ": test_iter must be given once for each test net: it is given ", iters, " times, for ",
            named, named == 1 ? " test net" : " test nets");
    return iters;
  }
  require(iters == 0, file.where("test_epoch"), ": test_epoch is true, but test_iter is given (",
          file.where("test_iter"),
          "): a test is one pass over the data, or so many batches; remove one of them");
  if (shared && states > named) return states;
  require(named > 0 || shared, file.where("test_epoch"),
          ": test_epoch is true, but there is no test net: name one with test_net: \"FILE\"");
  return named > 0 ? named : 1;
}

}  // namespace

NetSource train_source(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  std::vector<std::string> given;
  if (solver.has_train_net_param()) given.push_back("train_net_param");
  if (solver.has_train_net()) given.push_back("train_net");
  if (solver.has_net_param()) given.push_back("net_param");
  if (solver.has_net()) given.push_back("net");
  require(!given.empty(), file.path,
          ": no training net: name its file with net: \"FILE\" (or use train_net, net_param, "
          "train_net_param)");
  require(given.size() == 1, file.where(given.back()), ": the training net is given ", given.size(),
          " times, by ", join(given, " and "), ": keep one of them");
  return {given[0], 0, solver.train_state(), 0};
}

std::vector<NetSource> test_sources(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  std::vector<NetSource> sources;
  for (int i = 0; i < solver.test_net_param_size(); ++i)
    sources.push_back({"test_net_param", i, {}, 0});
  for (int i = 0; i < solver.test_net_size(); ++i) sources.push_back({"test_net", i, {}, 0});
  const bool shared = solver.has_net() || solver.has_net_param();
  const int tests = test_count(file, static_cast<int>(sources.size()), shared);
  // Any further test_iter create test nets from the net file that training uses.
  while (static_cast<int>(sources.size()) < tests)
    sources.push_back({solver.has_net_param() ? "net_param" : "net", 0, {}, 0});
  const int states = solver.test_state_size();
  require(states == 0 || states == tests, file.where("test_state"), ": test_state is given ",
          states, " times, for ", tests, tests == 1 ? " test net" : " test nets",
          ": give it once for each, or not at all");
  bool tested = false;
  for (int i = 0; i < tests; ++i) {
    sources[i].whole_epoch = solver.test_epoch();
    if (!solver.test_epoch()) sources[i].test_iter = solver.test_iter(i);
    if (states > 0) sources[i].state = solver.test_state(i);
    require(sources[i].test_iter >= 0, file.where(cat("test_iter[", i, "]")), ": test_iter is ",
            sources[i].test_iter, ": it counts batches, or is 0 for a net that is never tested");
    tested |= sources[i].tested();
  }
  const bool has_interval =
      solver.test_interval() > 0 || solver.test_interval_epoch() > 0 || solver.epoch_log();
  require(!tested || has_interval, file.where(solver.test_epoch() ? "test_epoch" : "test_iter"),
          ": there are test nets, but test_interval is ", solver.test_interval(),
          ": say after how many iterations to test, for example test_interval: 500");
  return sources;
}

std::string describe_test(const SolverParameter& solver, const NetSource& source) {
  const std::string path = path_of(solver, source);
  return path.empty() ? source.field : cat(source.field, " file: ", path);
}

std::string describe_train(const SolverParameter& solver, const NetSource& source) {
  const std::string path = path_of(solver, source);
  return path.empty() ? cat("Creating training net specified in ", source.field, ".")
                      : cat("Creating training net from ", source.field, " file: ", path);
}

NetFile open_net(const SolverFile& file, const NetSource& source) {
  const std::string path = path_of(file.solver, source);
  if (path.empty()) {
    return inner_net(file, source.field == "test_net_param"
                               ? cat(source.field, "[", source.index, "]")
                               : source.field);
  }
  const std::string found = find_file(path, folder_of(file.path));
  if (!file_exists(found))
    fail(file.where(source.field), ": ", source.field, " \"", path, "\" does not exist");
  return read_net_file(found, file.settings.get());
}

void check_trained(const SolverFile& file, const NetSource& source, const NetFile& net,
                   const NetState& state) {
  if (state.phase() == TRAIN) return;
  fail(source.state.has_phase() ? file.where("train_state") : net.where("state"),
       ": the net that is trained has phase: TEST in its state, in which nothing is learned; leave "
       "the phase out");
}

}  // namespace crema
