#include "tools/replay/part.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/fields/solver_nets.h"
#include "solver/solver.h"
#include "tools/replay/advance.h"

namespace crema {
namespace {

using Hashes = std::vector<std::vector<uint64_t>>;  // by iteration and parameter

class KeepHashes : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* hashes = std::get_if<event::WeightHashes>(&event)) {
      if (all.empty()) first_ = hashes->iteration;
      all.resize(static_cast<size_t>(hashes->iteration - first_));  // the run may have gone back
      all.push_back(hashes->parameters);
    }
  }
  Hashes all;

 private:
  int64_t first_ = 0;
};

struct Names {
  std::string of(size_t parameter) const { return parameter < all.size() ? all[parameter] : "?"; }
  // "conv1/0 (20x1x5x5)"
  std::string named(size_t parameter) const {
    return parameter < all.size() ? cat(all[parameter], " (", shapes[parameter], ")") : "none";
  }
  void add(const Parameter& parameter) {
    all.push_back(cat(parameter.layer, "/", parameter.index));
    shapes.push_back(parameter.shape.brief());
  }
  std::vector<std::string> all, shapes;
};

// The weights before each of the iterations from the start to `last`, and after it.
Hashes hashes_of(const RunSetting& setting, const std::string& state, int64_t last, Names* names) {
  enter_folder_of(setting.run);
  KeepHashes keep;
  SolverOptions options = setting.solver;
  options.records = options.records_all_weights = true;
  options.snapshot = state;
  Advance advance;
  options.readers = {&keep, &advance};
  setting.context->set_log(silent_log());
  const int64_t solver_at = state.empty() ? 0 : setting.run.start_for(last).iteration;
  Solver solver(*setting.context, setting.run.solver(setting.folder + "/run", solver_at), options);
  for (const Parameter& parameter : solver.net().parameters()) names->add(parameter);
  try {
    advance.to(solver, last + 2, setting.run.rollbacks({state, solver.iteration()}, last));
  } catch (const Diverged&) {  // what came before it counts
  }
  return std::move(keep.all);
}

std::string named(const OpenedBlob& blob) {
  return cat("the blob \"", blob.blob, "\" of layer \"", blob.layer, "\" (", blob.type, ")");
}

}  // namespace

std::optional<int64_t> first_difference(const RecordedIterations& a, const RecordedIterations& b) {
  for (int64_t i = std::max(a.first, b.first); i < std::min(a.end(), b.end()); ++i) {
    const auto of_a = a.weights.find(i), of_b = b.weights.find(i);
    const bool weights =
        of_a != a.weights.end() && of_b != b.weights.end() && of_a->second.all != of_b->second.all;
    const bool loss = std::bit_cast<uint32_t>(a.loss(i)) != std::bit_cast<uint32_t>(b.loss(i)) &&
                      !(std::isnan(a.loss(i)) && std::isnan(b.loss(i)));
    if (weights || loss) return i;
  }
  return std::nullopt;
}

std::string first_difference(const OpenedIteration& a, const OpenedIteration& b) {
  const auto same_name = [](const OpenedBlob& one, const OpenedBlob& other) {
    return one.layer == other.layer && one.blob == other.blob;
  };
  const size_t blobs = std::min(a.blobs.size(), b.blobs.size());
  for (size_t i = 0; i < blobs; ++i) {
    if (same_name(a.blobs[i], b.blobs[i]) && a.blobs[i].shape != b.blobs[i].shape)
      return cat("the shape of ", named(a.blobs[i]), ": ", a.blobs[i].shape, " and ",
                 b.blobs[i].shape);
    if (!same_name(a.blobs[i], b.blobs[i]))
      return cat("the nets: ", named(a.blobs[i]), " has no equal, where the other has ",
                 named(b.blobs[i]));
    if (a.blobs[i].hash != b.blobs[i].hash) return named(a.blobs[i]);
  }
  if (a.blobs.size() != b.blobs.size()) return "the nets: one has more layers";
  for (size_t i = blobs; i-- > 0;) {
    if (a.blobs[i].gradient_hash != b.blobs[i].gradient_hash)
      return "the gradient of " + named(a.blobs[i]);
  }
  const size_t parameters = std::min(a.parameters.size(), b.parameters.size());
  for (const bool gradients : {true, false}) {
    for (size_t i = parameters; i-- > 0;) {
      const OpenedParameter &one = a.parameters[i], &other = b.parameters[i];
      const std::string name = cat("parameter ", one.index, " of layer \"", one.layer, "\"");
      if (gradients && one.gradient_hash != other.gradient_hash) return "the gradient of " + name;
      if (!gradients && one.update_hash != other.update_hash) return "the update of " + name;
    }
  }
  return "";
}

std::vector<std::string> file_differences(const RecordedRun& a, const RecordedRun& b) {
  const auto read = [](const RecordedRun& run) {
    enter_folder_of(run);
    const SolverFile file = run.solver("", run.iterations().end());
    return std::pair(file.solver, open_net(file, train_source(file)).net);
  };
  const auto [solver_a, net_a] = read(a);
  const auto [solver_b, net_b] = read(b);
  std::vector<std::string> found = changes_since(recorded_recipe(solver_a), solver_b);
  for (int i = 0; i < std::max(net_a.layer_size(), net_b.layer_size()); ++i) {
    const bool both = i < net_a.layer_size() && i < net_b.layer_size();
    if (both && net_a.layer(i).SerializeAsString() == net_b.layer(i).SerializeAsString()) continue;
    const NetParameter& named = i < net_a.layer_size() ? net_a : net_b;
    found.push_back(cat("layer \"", named.layer(i).name(), "\" of the nets differs"));
  }
  return found;
}

std::vector<std::string> start_differences(const RecordedRun& a, const RecordedRun& b) {
  RunLock of_a = a.lock(), of_b = b.lock();
  for (RunLock* lock : {&of_a, &of_b}) {
    if (!lock->is_object()) return {};
    for (const char* of_files : {"net", "solver", "seed"}) lock->erase(of_files);
  }
  return lock_differences(of_a, of_b);
}

std::optional<Parting> find_parting(ProgramLog& log, const RunSetting& a, const RunSetting& b,
                                    int64_t last) {
  const auto start_of = [&](const RunSetting& one) {
    return one.run.start_for(std::max(one.run.iterations().first, last - 1));
  };
  const RecordedRun::Start start_a = start_of(a), start_b = start_of(b);
  const int64_t first = std::max(start_a.iteration, start_b.iteration);  // of both
  log.info(cat("Both again, from iterations ", start_a.iteration, " and ", start_b.iteration,
               " to ", last));
  Names names, others;
  Hashes hashes_a = hashes_of(a, start_a.state, last, &names),
         hashes_b = hashes_of(b, start_b.state, last, &others);
  for (size_t i = 0; i < std::max(names.all.size(), others.all.size()); ++i) {
    if (names.named(i) != others.named(i))
      return Parting{first,
                     cat("the nets' parameters: ", names.named(i), " and ", others.named(i))};
  }
  for (auto [hashes, start] : {std::pair(&hashes_a, start_a), std::pair(&hashes_b, start_b)})
    hashes->erase(
        hashes->begin(),
        hashes->begin() + std::min<std::ptrdiff_t>(first - start.iteration, std::ssize(*hashes)));
  for (size_t i = 0; i < std::min(hashes_a.size(), hashes_b.size()); ++i) {
    const auto [one, other] =
        std::mismatch(hashes_a[i].begin(), hashes_a[i].end(), hashes_b[i].begin());
    if (one == hashes_a[i].end()) continue;
    const int64_t before = first + static_cast<int64_t>(i);
    const std::string parameter = names.of(static_cast<size_t>(one - hashes_a[i].begin()));
    if (i == 0) {
      // Their losses may have been equal for some time.
      const int64_t begun = std::max(a.run.iterations().first, b.run.iterations().first);
      if (first > begun) return find_parting(log, a, b, first);
      return Parting{
          before,
          cat(before == 0 ? "the initial values of " : "what they began with, of ", parameter)};
    }
    // The iteration before has the cause.
    const auto opened = [&](const RunSetting& one) {
      const ReplayRequest request{.first = before - 1, .last = before - 1};
      return replay(log, one, request).iterations[0];
    };
    const OpenedIteration opened_a = opened(a), opened_b = opened(b);
    const std::string what = first_difference(opened_a, opened_b);
    return Parting{before - 1, what.empty()
                                   ? cat("rounding, as layer by layer both are equal; after it ",
                                         parameter, " is the first parameter that differs")
                                   : what};
  }
  return std::nullopt;
}

}  // namespace crema
