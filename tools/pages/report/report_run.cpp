#include "tools/pages/report/report_run.h"

#include <set>

#include "base/error.h"
#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "tools/console/table.h"

namespace crema {

namespace {

bool has_weights(const Run& run, const Trained& trained) {
  return run.identity("parameters") == trained.parameters && run.with_weights(trained.weights);
}

const Run& run_named(const std::vector<Run>& runs, const std::string& id, const std::string& path) {
  std::vector<std::string> names;
  const Run* found = nullptr;
  for (const Run& run : runs) {
    names.push_back(run.id);
    if (!starts_with(run.id, id)) continue;
    require(!found || run.id == id, "-run_id ", id, ": several runs of ", path,
            " begin like this: ", found ? found->id : "", ", ", run.id);
    found = &run;
  }
  require(found, "-run_id ", id, ": ", path, " has no such run; it has ", join(names, ", "));
  return *found;
}

// Describes which of the two (net and weights) do not belong to the run.
std::vector<std::string> mismatches(const std::vector<Run>& runs, const Run& run,
                                    const Trained& trained) {
  if (run.identity("parameters").empty()) {
    return {
        "This run was recorded without its net and weights, so it is unknown whether -model and "
        "-weights belong to it."};
  }
  const std::string net = cat("the net of run ", run.id, " (", run.identity("net_file"), ")");
  std::string owner;
  for (const Run& other : runs) {
    if (has_weights(other, trained)) owner = other.id;
  }
  if (run.identity("parameters") != trained.parameters) {
    return {cat("-model is not ", net, ": its parameters differ. ",
                owner.empty() ? "It is unknown whether -weights belong to the run."
                              : cat("-weights belong to run ", owner, "."))};
  }
  std::vector<std::string> notes;
  if (run.identity("net_text") != trained.net_text)
    notes.push_back(cat("-model has the parameters of ", net, ", but a different text."));
  if (run.with_weights(trained.weights)) return notes;
  notes.push_back(
      cat("-weights belong to no snapshot of run ", run.id,
          owner.empty() ? ", nor of any other in the file." : cat(", but of run ", owner, "."),
          " The filters and misclassified samples come from them, the curves do not."));
  return notes;
}

}  // namespace

Trained trained_of(Net& net, const NetParameter& file) {
  return {hash_of_text(file), fingerprint_of(net.graph()), hash_of_weights(net)};
}

ChosenRun choose_run(const std::vector<Run>& runs, const std::string& id, const Trained* trained,
                     const std::string& path) {
  const Run* run = &runs.back();
  std::string why = runs.size() == 1 ? "" : "the last in the file; -run_id chooses another";
  if (!id.empty()) {
    run = &run_named(runs, id, path);
    why = "as -run_id says";
  } else if (trained && runs.size() > 1) {
    for (const Run& other : runs) {
      if (!has_weights(other, *trained)) continue;
      run = &other;
      why = "the one that -weights belong to";
    }
  }
  return {*run, why, trained ? mismatches(runs, *run, *trained) : std::vector<std::string>()};
}

std::vector<Run> named_runs(const std::vector<Run>& runs, const std::string& list,
                            const std::string& path) {
  if (list == "all") return runs;
  std::set<const Run*> named;
  for (const std::string& id : split(list, ','))
    named.insert(&run_named(runs, std::string(trim(id)), path));
  std::vector<Run> chosen;
  for (const Run& run : runs) {
    if (named.count(&run)) chosen.push_back(run);
  }
  return chosen;
}

void print_runs(const std::vector<Run>& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"run", "net", "net file", "started", "iterations", "last loss"}};
  for (const Run& run : runs) {
    rows.push_back({run.id, run.identity("net_name"), run.identity("net_file"),
                    run.identity("started"), cat(run.iterations()), cat(run.last_loss())});
  }
  print_table(rows, 4);
}

}  // namespace crema
