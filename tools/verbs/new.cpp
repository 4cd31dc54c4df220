// `crema new DATA PROJECT`: looks at data, decides how to learn from them, writes a project that a person can
// edit, and trains it.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "base/visible.h"
#include "solver/readers/metrics_file.h"
#include "solver/readers/rate_search.h"
#include "tools/devices.h"
#include "tools/flags/convert_flags.h"
#include "tools/flags/shell_words.h"
#include "tools/project/first_look.h"
#include "tools/project/project.h"
#include "tools/runs/run_folder.h"
#include "tools/signals.h"
#include "tools/tune/child_process.h"
#include "tools/tune/sweep_table.h"
#include "tools/verb.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

using NewFlags = FlagsOf<"model", "weights", "label", "task", "split", "seed", "iterations",
                         "batch", "gpu", "dry_run", "set">;

void print_lines(const std::string& title, const std::vector<std::string>& lines) {
  std::cout << title << "\n";
  for (const std::string& line : lines) std::cout << "  " << visible(line) << "\n";
  std::cout << std::flush;
}

// `path` without links and dots, also where its end does not exist yet.
std::string real_path(const std::string& path) {
  return without_slash(fs::weakly_canonical(fs::absolute(path)).string());
}

void require_free(const std::string& project, const std::string& data) {
  require(!project.empty(), "the name of the project is empty; name a new folder for it");
  require(!fs::is_symlink(project) || folder_exists(project), project,
          ": is a link to a folder that does not exist; name a new folder for the project");
  // The next look at the data would take the project for a part of them.
  require(!starts_with(real_path(project) + "/", real_path(data) + "/") || !folder_exists(data),
          project, ": is inside the data, ", data, "; name a folder outside of them");
  if (!folder_exists(project)) {
    require(!file_exists(project), project, ": is a file; name a new folder for the project");
    return;
  }
  require(
      list_folder(project).empty(), project,
      ": is there already, and is not overwritten; name another folder, or edit its files and run "
      "`crema train -solver solver.prototxt -run auto` there");
}

// Flags of a training and of the search for its rate.
std::vector<std::string> training_flags(const NewFlags& flags) {
  std::vector<std::string> words;
  if (!flags.gpu.empty()) words.push_back("-gpu=" + flags.gpu);
  if (!flags.weights.empty()) {
    std::vector<std::string> files;
    for (const std::string& file : split(flags.weights, ',')) files.push_back(fs::absolute(file));
    words.push_back("-weights=" + join(files, ","));
    words.push_back("-weights_mode=match");
  }
  return words;
}

// The learning rate that `crema lr_find` proposes in the project; 0: none.
double proposed_rate(const std::string& project, const std::vector<std::string>& flags,
                     int64_t iterations) {
  std::vector<std::string> words = {"lr_find", "-solver=solver.prototxt",
                                    "-output=runs/lr_find.svg",
                                    cat("-iterations=", std::clamp<int64_t>(iterations, 20, 100))};
  words.insert(words.end(), flags.begin(), flags.end());
  ChildProcess search(words, {}, {.folder = project});
  const int code = search.wait();  // before the message
  require(code == 0, project, ": the search for a learning rate failed: ", search.message(),
          "; the project is complete: correct what this names, or set base_lr in its "
          "solver.prototxt, and run `crema train -solver solver.prototxt -run auto` there");
  std::vector<RatePoint> points;
  const std::string csv = read_text(project + "/runs/lr_find.csv");
  for (const std::string& line : split(csv, '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() < 3 || cells[0] == "iteration") continue;
    points.push_back(
        {std::strtod(cells[1].c_str(), nullptr), std::strtod(cells[2].c_str(), nullptr), 0});
  }
  return points.empty() ? 0 : rate_proposal(&points).proposed;
}

// Rates further from the model's own than this factor come from a curve with little to see.
constexpr double trusted = 5;

double rounded(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", rate);
  return std::strtod(text, nullptr);
}

// Chooses base_lr by a search, and says why.
std::string choose_rate(const std::string& project, const std::vector<std::string>& flags,
                        SolverParameter* solver) {
  const double own = solver->base_lr(), found = proposed_rate(project, flags, solver->max_iter());
  if (found == 0)
    return cat("learning rate: ", own,
               ", the model's; `crema lr_find` saw no rate at which the loss falls clearly");
  const double rate = rounded(std::clamp(found, own / trusted, own * trusted));
  solver->set_base_lr(static_cast<float>(rate));
  if (rate != rounded(found))
    return cat("learning rate: ", rate, ", as near to the ", rounded(found),
               " that `crema lr_find` proposes as the model's own, ", own, ", lets it be trusted");
  return cat("learning rate: ", rate, ", as `crema lr_find` proposes (runs/lr_find.svg)");
}

// What the last test of a run says; "": there was none.
std::string result_of_run(const std::string& folder) {
  SweepRun run;
  run.name = fs::path(folder).filename();
  std::vector<std::string> texts;
  for (const SweepValue& value : result_of(run, fs::path(folder).parent_path(), {}).values)
    texts.push_back(cat(value.name, " ", value.last));
  return join(texts, ", ");
}

class NewProject {
 public:
  NewProject(const VerbCall& call, const NewFlags& flags)
      : call_(call),
        flags_(flags),
        project_(without_slash(call.arguments[1])),
        place_(project_.empty() ? "" : real_path(project_)),
        train_flags_(training_flags(flags)) {
    options_.data = without_slash(call.arguments[0]);
    options_.label = flags.label;
    options_.task = flags.task;
    if (!flags.split.empty()) options_.split = split_in(flags.split);
    options_.seed = static_cast<uint64_t>(flags.seed);
    options_.gpu = !flags.gpu.empty();
    options_.model = flags.model;
    options_.weights = flags.weights;
    options_.settings = flags.set;
  }

  void run() {
    require_free(project_, options_.data);
    require(!flags_.iterations_given || flags_.iterations > 0, "-iterations ", flags_.iterations,
            ": a training needs one iteration or more; leave it out to have the length chosen");
    require(flags_.batch >= 0, "-batch ", flags_.batch,
            ": is negative; give the number of samples, or leave it out to have it chosen");
    if (!flags_.gpu.empty()) gpus_of(flags_.gpu);
    for (const std::string& file : split(flags_.weights, ','))
      require(file_exists(file), "-weights ", file, ": there is no such file");
    call_.log.info(cat("Looking at ", options_.data));
    task_ = task_of(options_, call_.log);
    survey_ = task_->survey();
    print_lines("Found", survey_);
    recipe_ = std::make_unique<Recipe>(
        recipe_of(*task_, options_, flags_.batch, flags_.iterations_given ? flags_.iterations : 0));
    recipe_->solver.set_random_seed(flags_.seed);
    print_lines("Decided", recipe_->decisions);
    if (flags_.dry_run) {
      std::cout << "Nothing was written (-dry_run).\n";
      return;
    }
    write();
    train();
  }

 private:
  std::string name() const { return fs::path(place_).filename(); }
  // As -run auto names it: by the net, or by the solver's file if the net has no name.
  std::string run_name() const {
    const std::string net = safe_name(recipe_->net.net().name());
    return "runs/" + (net.empty() ? "solver" : net) + "-1";
  }
  std::string command() const {
    std::vector<std::string> words = {"crema"};
    for (size_t i = 1; i < call_.words.size(); ++i) words.push_back(shell_quoted(call_.words[i]));
    return join(words, " ");
  }

  void write() {
    // An empty folder that is there already is filled: it may be a mount point, or a shell's own.
    const bool fills = folder_exists(place_);
    const std::string goal = fills ? place_ + "/.project" : place_;
    fs::create_directories(folder_of(goal));
    remove_leftovers(folder_of(goal), TemporaryEntry::Kind::folder, fs::path(goal).filename());
    const TemporaryEntry folder = make_temporary(goal, TemporaryEntry::Kind::folder);
    // A Ctrl-C leaves nothing behind.
    const auto leave = [&](int signal, Action) {
      std::error_code ignored;
      fs::remove_all(folder.path, ignored);
      _exit(128 + signal);
    };
    const Signals signals({Action::stop, Action::stop, Action::stop}, leave);
    try {
      fs::create_directories(folder.path + "/data");
      fs::create_directories(folder.path + "/runs");
      task_->convert(folder.path, call_.log);
      recipe_->net.set_heading(cat("# The net of ", name(), ", made of the model ", recipe_->model,
                                   ". Paths are relative to this folder.\n"));
      write_file_atomically(folder.path + "/net.prototxt", recipe_->net.text());
      recipe_->solver.set_snapshot_prefix(safe_name(name()).empty() ? "net" : safe_name(name()));
      write_solver(folder.path);
      check_project(folder.path, project_);
      if (fills) {
        for (const std::string& entry : list_folder(folder.path))
          fs::rename(folder.path + "/" + entry, place_ + "/" + entry);
        fs::remove(folder.path);
      } else {
        fs::rename(folder.path, place_);
      }
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(folder.path, ignored);
      throw;
    }
  }

  void write_solver(const std::string& folder) const {
    write_file_atomically(
        folder + "/solver.prototxt",
        solver_text(recipe_->solver,
                    "# Trains net.prototxt: crema train -solver solver.prototxt -run auto\n"));
  }

  void write_page(const std::string& result) const {
    std::string flags;
    for (const std::string& flag : train_flags_) flags += " " + shell_quoted(flag);
    const std::string run = run_name();
    write_file_atomically(
        project_ + "/README.md",
        page_text({.name = name(),
                   .data = options_.data,
                   .command = command(),
                   .flags = flags,
                   .weights = cat(run, "/snapshots/", recipe_->solver.snapshot_prefix(), "_iter_",
                                  trained(), ".caffemodel"),
                   .run = run,
                   .result = result},
                  *task_, survey_, recipe_->decisions));
  }

  // The iteration of the newest weights; fewer than planned after a Ctrl-C.
  int64_t trained() const {
    const std::string folder = cat(project_, "/", run_name(), "/snapshots");
    const std::string begin = recipe_->solver.snapshot_prefix() + "_iter_";
    int64_t newest = 0;
    if (folder_exists(folder)) {
      for (const std::string& file : list_folder(folder)) {
        if (starts_with(file, begin) && ends_with(file, ".caffemodel"))
          newest = std::max<int64_t>(newest, std::atoll(file.c_str() + begin.size()));
      }
    }
    return newest > 0 ? newest : recipe_->iterations;
  }

  void train() {
    write_page("");
    if (!recipe_->keeps_rate) {
      call_.log.info("Looking for a learning rate");
      const std::string found = choose_rate(project_, train_flags_, &recipe_->solver);
      recipe_->decisions.push_back(found);
      std::cout << "  " << found << "\n" << std::flush;
      write_solver(project_);
      write_page("");
    }
    std::vector<std::string> words = {"train", "-solver=solver.prototxt", "-run=auto"};
    words.insert(words.end(), train_flags_.begin(), train_flags_.end());
    // A Ctrl-C is for the training, which writes a snapshot.
    std::signal(SIGINT, SIG_IGN);
    ChildProcess training(words, {}, {.folder = project_, .shown = true});
    const int code = training.wait();
    require(code == 0, project_, ": ",
            code > 128 ? cat("signal ", code - 128, " ended the training")
                       : "the training ended with an error, which the lines above tell",
            "; the project is complete, so that "
            "`crema train -solver solver.prototxt -run auto` there tries again");
    const std::string result = result_of_run(project_ + "/" + run_name());
    write_page(result);
    const int64_t reached = trained();
    if (reached < recipe_->iterations)
      std::cout
          << "Stopped at iteration " << reached << " of " << recipe_->iterations
          << "; `crema train -solver solver.prototxt -run auto -snapshot auto` in the project "
             "goes on.\n";
    std::cout << "Reached: " << result << "\nThe project is in " << visible(project_)
              << "; its README.md says how to go on.\n";
  }

  const VerbCall& call_;
  const NewFlags& flags_;
  const std::string project_;  // as given, for messages
  const std::string place_;    // without links and dots
  const std::vector<std::string> train_flags_;
  NewOptions options_;
  std::unique_ptr<Task> task_;
  std::vector<std::string> survey_;
  std::unique_ptr<Recipe> recipe_;
};

int run_new(const VerbCall& call, const NewFlags& flags) {
  NewProject(call, flags).run();
  return 0;
}

REGISTER_VERB(
    new,
    {.summary = "makes a project of data, and trains it: from pictures or a table to a net",
     .usage = "[flags] DATA PROJECT",
     .example = "crema new pictures/ my_project\ncrema new -dry_run table.csv my_project",
     .meanings =
         {{"model",
           "The model to begin with: a folder of models/, or the path of a net, with its solver "
           "next to it. Empty: it is chosen for the data."},
          {"split", "The fraction for training, if the data are not divided. Empty: 0.8."},
          {"seed",
           "The seed of the division and of the training: the same one gives the same project."},
          {"iterations",
           "The length of the training; without it, it follows from the number of samples."},
          {"batch", "The batch in training; 0: it is chosen."},
          {"set",
           "A variable of the model's files, such as width=48, or a field of the solver or of a "
           "layer, "
           "such as base_lr=0.02 or 'layer[conv1].convolution_param.num_output=64'; may be given "
           "several times."}},
     .min_arguments = 2,
     .max_arguments = 2,
     .log = LogStyle::brief,
     .run = run_new});

}  // namespace

}  // namespace crema
