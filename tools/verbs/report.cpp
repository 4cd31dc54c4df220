// `crema report RUN... [-run_id ID] [-model NET.prototxt -weights FILE]`: writes a page about one
// or several runs.
#include <filesystem>
#include <optional>
#include <set>

#include "base/files.h"
#include "net/prototxt/prototxt.h"
#include "net/sources/source_files.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/pages/report/report_net.h"
#include "tools/pages/report/report_page.h"
#include "tools/pages/report/report_run.h"
#include "tools/pages/runs/found_runs.h"
#include "tools/pages/runs/run_sections.h"
#include "tools/pages/runs/run_texts.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ReportFlags = FlagsOf<"output", "run_id", "model", "weights", "weights_mode", "labels",
                            "iterations", "rgb", "gpu", "level", "stage">;

// The files that the arguments name, each once.
std::vector<FoundRuns> files_of(const std::vector<std::string>& arguments) {
  std::vector<FoundRuns> files;
  std::set<std::string> seen, names;
  for (const std::string& argument : arguments) {
    for (FoundRuns& file : find_runs(argument)) {
      std::error_code error;
      const std::string path = std::filesystem::weakly_canonical(file.metrics, error).string();
      if (!seen.insert(path).second) continue;
      if (!names.insert(file.name).second) file.name = file.metrics;
      files.push_back(std::move(file));
    }
  }
  return files;
}

// The files next to the metrics of one run.
void add_folder(const FoundRuns& file, const std::string& labels, PageRun* run) {
  run->folder = file.folder;
  run->classes = class_names_of_run(*run->run, file.folder, labels,
                                    classes_of_confusion(*run->run, file.folder));
  run->pictures = read_pictures(file.folder, run->classes);
}

void write_report(ProgramLog& log, const Report& report, const std::string& file) {
  log.info(report.about);
  for (const std::string& note : report.notes) log.warning(note);
  const std::string output = file.empty() ? "report.html" : file;
  write_file_atomically(output, report_page(report));
  log.info("Wrote " + output);
}

void report_one(const VerbCall& call, const ReportFlags& flags, const FoundRuns& file,
                const std::vector<Run>& runs) {
  Report report;
  report.title = file.name;
  const std::unique_ptr<Context> context = make_context(
      call.log,
      DeviceFlags::without<"implementation", "gpu_memory", "tune", "deterministic", "off">(flags));
  std::unique_ptr<Net> net;
  std::optional<Trained> trained;
  if (!flags.model.empty()) {
    NetInput input = read_model(
        call.log, ModelFlags::without<"set", "assume", "batch", "off", "recompute">(flags), TEST);
    input.options.keep_blobs = true;
    context->set_log(silent_log());
    net = std::make_unique<Net>(*context, input.net, input.options);
    load_weights_of_flags(flags, *net);
    trained = trained_of(*net, read_net_file(flags.model).net);
    report.title = net->name().empty() ? flags.model : net->name();
  }
  if (runs.size() > 1) print_runs(runs);
  const ChosenRun chosen =
      choose_run(runs, flags.run_id, trained ? &*trained : nullptr, file.metrics);
  report.about = cat("Run ", chosen.run.id, chosen.why.empty() ? "" : " (" + chosen.why + ")");
  if (const std::string what = described(chosen.run); !what.empty()) report.about += ": " + what;
  report.notes = chosen.notes;
  PageRun run{.name = file.name, .run = &chosen.run};
  add_folder(file, flags.labels, &run);
  const RunTexts texts = texts_of(chosen.run, file.folder);
  if (net) {
    if (run.classes.empty()) {
      const ClassNames names = class_names_of(net->graph().net, folder_of(flags.model));
      if (const size_t classes = classes_of_confusion(chosen.run, file.folder))
        require_count(names, static_cast<int64_t>(classes), "the run's confusion matrix");
      run.classes = names.names;
    }
    const int batches = flags.iterations_given ? flags.iterations : 0;  // 0: all
    std::vector<PagePictures> pictures = {filters_of(*net, flags.rgb),
                                          mistakes_of(*net, batches, flags.rgb, run.classes)};
    std::erase_if(pictures, [](const PagePictures& one) { return one.title.empty(); });
    run.pictures = pictures;
  }
  report.drawing =
      drawing_of(net ? RunTexts{.net_file = flags.model, .own = true} : texts, call.log);
  report.texts = {{"Solver", texts.solver}, {"Net as text", texts.net}};
  report.runs = {run};
  write_report(call.log, report, flags.output);
}

// Runs of one file go by their names, those of several by their files'.
void report_several(const VerbCall& call, const ReportFlags& flags,
                    const std::vector<FoundRuns>& files,
                    const std::vector<std::vector<Run>>& chosen) {
  require(flags.model.empty(),
          "-model and -weights show the filters and the mistakes of one run, but several are to be "
          "compared");
  Report report;
  std::vector<std::string> names;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const Run& run : chosen[i]) {
      const std::string name = files.size() == 1       ? run.id
                               : chosen[i].size() == 1 ? files[i].name
                                                       : files[i].name + " " + run.id;
      const RunTexts texts = texts_of(run, files[i].folder);
      report.runs.push_back({.name = name, .run = &run, .texts = texts});
      report.texts.emplace_back("Solver of " + name, texts.solver);
      names.push_back(name);
    }
  }
  report.title = cat(names.size(), " runs compared");
  report.about = names == call.arguments ? join(names, ", ")
                                         : cat(join(call.arguments, ", "), ": ", join(names, ", "));
  write_report(call.log, report, flags.output);
}

int run_report(const VerbCall& call, const ReportFlags& flags) {
  require(flags.model.empty() == flags.weights.empty(),
          "filters and misclassified samples need both -model NET.prototxt and -weights FILE");
  const std::vector<FoundRuns> files = files_of(call.arguments);
  const bool lists = flags.run_id == "all" || flags.run_id.find(',') != std::string::npos;
  if (files.size() == 1) {
    const std::vector<Run> runs = read_runs(files[0].metrics);
    require(!runs.empty(), files[0].metrics,
            ": is empty; `crema train` writes metrics.jsonl next to its snapshots");
    if (lists && named_runs(runs, flags.run_id, files[0].metrics).size() > 1) {
      report_several(call, flags, files, {named_runs(runs, flags.run_id, files[0].metrics)});
    } else {
      ReportFlags one = flags;
      if (lists) one.run_id.clear();
      report_one(call, one, files[0], runs);
    }
    return 0;
  }
  require(flags.run_id.empty() || flags.run_id == "all", "-run_id ", flags.run_id,
          ": names runs of one file, but ", files.size(),
          " are given; expected all, or none for the last run of each");
  std::vector<FoundRuns> begun;
  std::vector<std::vector<Run>> chosen;
  for (const FoundRuns& file : files) {
    std::vector<Run> runs = read_runs(file.metrics);
    if (runs.empty()) {  // a training that has just been started
      call.log.warning(file.metrics + " is empty: it is left out");
      continue;
    }
    if (flags.run_id.empty()) runs.erase(runs.begin(), runs.end() - 1);
    begun.push_back(file);
    chosen.push_back(std::move(runs));
  }
  require(!begun.empty(), "of the ", files.size(), " files of metrics each is empty");
  report_several(call, flags, begun, chosen);
  return 0;
}

REGISTER_VERB(
    report,
    {.summary = "writes a page with curves, filters and mistakes of one run or several",
     .usage = "METRICS.jsonl|RUN_FOLDER|FOLDER_OF_RUNS... [-model NET.prototxt -weights "
              "FILE] [flags]",
     .example = "crema report runs/lenet-1\ncrema report runs/",
     .meanings = {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
                  {"model", "The net of the weights, for filters and mistakes: a prototxt file."},
                  {"weights", "Trained weights for filters and mistakes."},
                  {"output", "The page to write. Empty: report.html."},
                  {"iterations", "The number of test batches to search for mistakes."},
                  {"rgb", "The channels of the pictures are R, G, B; otherwise B, G, R."}},
     .min_arguments = 1,
     .max_arguments = SIZE_MAX,
     .log = LogStyle::brief,
     .run = run_report});

}  // namespace

}  // namespace crema
