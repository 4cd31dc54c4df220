// `crema replay -run DIR -iteration N`: computes an iteration of a recorded run again and opens it up.
#include "tools/replay/replay.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/temporary.h"
#include "base/visible.h"
#include "data/databases/npy_writer.h"
#include "solver/readers/metrics_file.h"
#include "solver/readers/pictures_reader.h"
#include "tools/console/table.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/replay/iteration_page.h"
#include "tools/pages/runs/page_run.h"
#include "tools/replay/run_setting.h"
#include "tools/replay/work_folder.h"
#include "tools/verb.h"

namespace crema {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

using ReplayFlags =
    FlagsOf<"run", "iteration", "until", "dump", "output", "rgb", "gpu", "precision",
            "deterministic", "implementation", "gpu_memory", "tune", "off", "recompute">;

constexpr const char* kRecord = "iteration.json";
constexpr int64_t kMostIterations = 1000;  // each needs room for a snapshot

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const OpenedIteration& opened) {
  Json samples = Json::array(), blobs = Json::array(), parameters = Json::array();
  for (const OpenedSample& s : opened.samples) {
    samples.push_back({{"number", s.number},
                       {"record", visible(s.record)},
                       {"loss", number(s.loss)},
                       {"label", s.label},
                       {"answer", s.answer},
                       {"least", number(s.low)},
                       {"largest", number(s.high)}});
  }
  for (const OpenedBlob& b : opened.blobs) {
    blobs.push_back({{"layer", visible(b.layer)},
                     {"type", b.type},
                     {"blob", visible(b.blob)},
                     {"shape", b.shape},
                     {"mean", number(b.mean)},
                     {"deviation", number(b.deviation)},
                     {"least", number(b.low)},
                     {"largest", number(b.high)},
                     {"zeros", b.zeros},
                     {"gradient", number(b.gradient)},
                     {"not_finite", b.not_finite}});
  }
  for (const OpenedParameter& p : opened.parameters) {
    parameters.push_back({{"layer", visible(p.layer)},
                          {"number", p.index},
                          {"shape", p.shape},
                          {"norm", number(p.norm)},
                          {"gradient", number(p.gradient)},
                          {"update", number(p.update)},
                          {"not_finite", p.not_finite}});
  }
  return {{"iteration", opened.iteration}, {"loss", number(opened.loss)},
          {"rate", opened.rate},           {"samples", samples},
          {"parameters", parameters},      {"blobs", blobs}};
}

std::string file_of_tensor(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == ':') c = '.';
  }
  return name + ".npy";
}

// A folder that takes its name when it is complete.
class NewFolder {
 public:
  explicit NewFolder(std::string goal) : goal_(std::move(goal)) {
    require(!fs::exists(goal_) || file_exists(goal_ + "/" + kRecord), "-output: ", goal_,
            " exists, and is no earlier replay: name another folder");
    std::error_code problem;
    fs::create_directories(fs::path(goal_).parent_path(), problem);
    require(!problem, fs::path(goal_).parent_path().string(),
            ": cannot make this folder: ", problem.message(), "; name another one with -output");
    path_ = make_temporary(goal_, TemporaryEntry::Kind::folder).path;
  }
  ~NewFolder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Another replay of the same iteration may do so at the same time.
  void finish() {
    constexpr int kTries = 100;
    std::error_code problem;
    for (int i = 0; i < kTries; ++i) {
      fs::remove_all(goal_, problem);
      fs::rename(path_, goal_, problem);
      if (!problem) return path_.clear();
    }
    fail(goal_, ": cannot be replaced: ", problem.message());
  }

 private:
  std::string goal_, path_;
};

std::string folder_of_iteration(const std::string& output, int64_t iteration) {
  return cat(output, "/iteration_", iteration);
}

std::vector<std::string> classes_of(const RecordedRun& run) {
  try {
    for (const Run& one : read_runs(run.folder() + "/metrics.jsonl"))
      return class_names_of_run(one, run.folder(), "", 0);
  } catch (const Error&) {  // a file that is wrong: numbers do
  }
  return {};
}

void print_samples(const OpenedIteration& opened, const std::vector<std::string>& classes) {
  constexpr size_t kShown = 8;
  std::vector<std::vector<std::string>> rows = {{"record", "what", "least value", "largest"}};
  for (const OpenedSample& sample : opened.samples) {
    if (rows.size() > kShown) break;
    rows.push_back({sample.record.empty() ? cat("sample ", sample.number) : sample.record,
                    sample_caption(sample, classes), short_number(sample.low),
                    short_number(sample.high)});
  }
  if (rows.size() > 1) print_table(rows, 2);
}

void print_parameters(const OpenedIteration& opened) {
  std::vector<std::vector<std::string>> rows = {{"parameter", "norm", "gradient", "update : norm"}};
  for (const OpenedParameter& one : opened.parameters) {
    if (!one.learned) continue;
    rows.push_back({cat(one.layer, "/", one.index), short_number(one.norm),
                    short_number(one.gradient),
                    one.norm > 0 ? short_number(one.update / one.norm) : ""});
  }
  if (rows.size() > 1) print_table(rows, 1);
}

std::string loss_text(const OpenedIteration& opened, const RecordedRun& run) {
  const RecordedIterations& all = run.iterations();
  const std::string recorded =
      all.has_loss(opened.iteration) ? cat("; the run recorded ", all.loss(opened.iteration)) : "";
  return cat("Iteration ", opened.iteration, ": loss ", static_cast<float>(opened.loss),
             " layer by layer", recorded, ", learning rate ", opened.rate);
}

// "": computed layer by layer it is the iteration of the run, but for rounding.
std::string layer_warning(const OpenedIteration& opened, const RecordedRun& run) {
  constexpr double kRounding = 0.01;  // of the loss
  if (!run.iterations().has_loss(opened.iteration)) return "";
  const double recorded = run.iterations().loss(opened.iteration);
  const double off = std::abs(opened.loss - recorded);
  if (!std::isfinite(off) || off <= kRounding * std::abs(recorded)) return "";
  return cat(
      "layer by layer, iteration ", opened.iteration, " has a loss of ",
      static_cast<float>(opened.loss), " where the run recorded ", static_cast<float>(recorded),
      ": what is shown is not what the run had. A layer that keeps a state of its own, which "
      "no snapshot has, such as one in Python, begins anew with each replay");
}

void write(const OpenedIteration& opened, const IterationReport& given, const std::string& goal) {
  NewFolder folder(goal);
  IterationReport report = given;
  for (const OpenedTensor& tensor : opened.tensors) {
    const std::string name = file_of_tensor(tensor.name);
    NpyWriter writer(folder.file(name), false);
    Shape shape = tensor.shape;
    if (shape.axes() == 0) shape = {1};
    writer.put(shape, tensor.values.data());
    writer.complete();
    writer.finish();
    report.files.push_back(name);
  }
  write_file_atomically(folder.file(kRecord), json_of(opened).dump(1) + "\n");
  write_file_atomically(folder.file("index.html"), iteration_page(opened, report));
  folder.finish();
}

std::vector<std::string> names_of_parameters(const OpenedIteration& opened) {
  std::vector<std::string> names;
  for (const OpenedParameter& one : opened.parameters)
    names.push_back(cat(one.layer, "/", one.index));
  return names;
}

int run_replay(const VerbCall& call, const ReplayFlags& flags) {
  ProgramLog& log = call.log;
  // As reproduce and bisect take it, too.
  const std::string named =
      flags.run.empty() && !call.arguments.empty() ? call.arguments[0] : flags.run;
  require(!named.empty(), "a run is needed: -run DIR, a folder of `crema train -run`");
  require(flags.run.empty() || call.arguments.empty(), "-run ", flags.run, " and ",
          call.arguments.empty() ? "" : call.arguments[0], ": give one of them");
  require(call.given.count("iteration") > 0 || flags.iteration >= 0,
          "an iteration is needed: -iteration N");
  require(flags.iteration >= 0, "-iteration ", flags.iteration, ": expected 0 or more");
  const int64_t last = call.given.count("until") > 0 ? flags.until : flags.iteration;
  const RecordedRun run(named);
  const RecordedRun::Start start = run.start_for(flags.iteration);
  const int64_t most = std::min(run.iterations().end(), flags.iteration + kMostIterations) - 1;
  require(last >= flags.iteration && last <= most, "-until ", last, ": expected ", flags.iteration,
          " to ", most);

  const std::string output =
      flags.output.empty() ? run.folder() + "/replay" : fs::absolute(flags.output).string();
  for (int64_t i = flags.iteration; i <= last; ++i) NewFolder(folder_of_iteration(output, i));
  const WorkFolder work("crema_replay");
  const RunSetting setting = setting_of(call, run, work.path());
  ReplayRequest request{.first = flags.iteration, .last = last};
  request.open.rgb = flags.rgb;
  for (const std::string& name : split(flags.dump, ',')) {
    const std::string wanted(trim(name));
    std::vector<std::string>& all = request.open.dumped;
    if (!wanted.empty() && std::count(all.begin(), all.end(), wanted) == 0) all.push_back(wanted);
  }
  const Replayed replayed = replay(log, setting, request);

  const std::vector<std::string> classes = classes_of(run);
  const std::string proof = proof_of(replayed, names_of_parameters(replayed.iterations[0]));
  std::vector<std::string> warnings = setting.notes;
  if (replayed.check.first()) {
    warnings = setting.differences();
    for (const std::string& one : run.resumes_after(start.iteration)) warnings.push_back(one);
    for (const OpenedBlob& blob : replayed.iterations[0].blobs) {
      if (blob.type != "Python") continue;
      warnings.push_back(cat("layer \"", visible(blob.layer),
                             "\" (Python) may keep a state of its own, which no snapshot has"));
      break;
    }
  }
  if (const RecordedRun::Change change = run.next_change(flags.iteration); change.iteration <= last)
    warnings.push_back(cat("the run was resumed in iteration ", change.iteration,
                           ", from where on ", join(change.fields, "; "),
                           ": open it and later ones in a replay of their own"));
  log.info(proof);
  for (const std::string& warning : warnings) log.warning(warning);
  if (!replayed.diverged.empty()) log.warning(replayed.diverged);
  const bool is_same = !replayed.check.first();
  PicturesReader pictures(log, run.folder() + "/pictures");
  for (const OpenedIteration& opened : replayed.iterations) {
    const std::string loss = loss_text(opened, run);
    log.answer(loss);
    if (replayed.iterations.size() == 1) {
      print_samples(opened, classes);
      print_parameters(opened);
    }
    std::vector<std::string> own = warnings;
    if (const std::string warning = layer_warning(opened, run); is_same && !warning.empty()) {
      log.warning(warning);
      own.push_back(warning);
    }
    const std::string folder = folder_of_iteration(output, opened.iteration);
    write(opened, {named, {loss, proof}, own, classes, {}}, folder);
    log.info(cat("Wrote ", folder, "/index.html"));
    const event::Pictures shown = sample_pictures(opened, classes);
    if (!shown.pictures.empty() && flags.output.empty()) pictures.read(shown);
  }
  return 0;
}

REGISTER_VERB(
    replay,
    {.summary = "computes an iteration of a run again and opens it up",
     .usage = "-run DIR -iteration N [-until M] [-dump BLOBS] [flags]",
     .example = "crema replay -run runs/LeNet-1 -iteration 1234\n"
                "crema replay -run runs/LeNet-1 -iteration 1234 -dump conv1,conv1:grad,ip2/0",
     .meanings = {{"run", "The folder of the run: of `crema train -run`."},
                  {"output",
                   "The folder for the pages, one folder for each iteration. Empty: replay in the "
                   "folder of the run."},
                  {"gpu", "The GPU to run on. Empty: as the run."},
                  {"precision", "The precision: fp32, tf32, bf16 or fp16. Empty: as the run."},
                  {"rgb", "The channels of the pictures are R, G, B; otherwise B, G, R."}},
     .max_arguments = 1,
     .run = run_replay});

}  // namespace

}  // namespace crema
