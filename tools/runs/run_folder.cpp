#include "tools/runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "tools/runs/expanded_solver.h"
#include "tools/runs/run_lock.h"
#include "tools/runs/run_record.h"
#include "tools/runs/run_record_file.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr auto kLookEvery = std::chrono::seconds(1);

// The K of NAME-K; 0: another name.
int number_in(const std::string& entry, const std::string& name) {
  if (!starts_with(entry, name + "-")) return 0;
  const std::string digits = entry.substr(name.size() + 1);
  const bool number = !digits.empty() && digits.size() < 9 && digits[0] != '0' &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoi(digits) : 0;
}

int highest_number(const std::string& name) {
  int highest = 0;
  for (const std::string& entry : list_folder_if_exists(kRuns))
    highest = std::max(highest, number_in(entry, name));
  return highest;
}

// False when it is there already.
bool make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return true;
  require(errno == EEXIST, path, ": cannot make the folder: ", std::strerror(errno));
  require(folder_exists(path), path, ": is a file; -run needs a folder");
  return false;
}

// Whether it contains anything not left by a run that was killed as it began.
bool has_other_files(const std::string& path) {
  for (const std::string& name : list_folder(path))
    if (name != "train.log" || fs::file_size(path + "/" + name) > 0) return true;
  return false;
}

}  // namespace

std::string safe_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter || c == '-' || c == '_' || c == '.' ? c : '_';
  }
  name.erase(0, std::min(name.find_first_not_of(".-"), name.size()));
  constexpr size_t kMost = 100;
  return name.substr(0, kMost);
}

RunFolder::RunFolder(ProgramLog& log, const FlagValues& flags, const std::string& name,
                     const std::string& snapshot)
    : log_(log), flags_(flags) {
  try {
    choose(flags.at("run")[0], name, snapshot);
    const int train_log = open_log();
    make(snapshot);
    log_.copy_to(train_log, file("train.log"));
  } catch (...) {
    remove_what_was_made();
    throw;
  }
  log_.info("The folder of this run is " + path_);
  remove_stale_request();
}

RunFolder::~RunFolder() {
  if (!begun_) remove_what_was_made();
}

void RunFolder::remove_what_was_made() {
  std::error_code none;  // the error that is on its way says more
  for (const std::string& name : written_) fs::remove_all(file(name), none);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) rmdir(folder->c_str());
}

void RunFolder::choose(const std::string& flag, const std::string& name,
                       const std::string& snapshot) {
  if (flag != "auto") {
    path_ = without_slash(flag);
    for (size_t at = path_.find('/', 1);; at = path_.find('/', at + 1)) {
      if (make_folder(path_.substr(0, at))) made_.push_back(path_.substr(0, at));
      if (at == std::string::npos) return;
    }
  }
  const std::string start = safe_name(name).empty() ? "run" : safe_name(name);
  int number = highest_number(start);
  const auto path = [&] { return cat(kRuns, "/", start, "-", number); };
  if (snapshot == "auto" && number > 0) {
    path_ = path();
    return;
  }
  if (make_folder(kRuns)) made_.push_back(kRuns);
  do ++number;
  while (!make_folder(path()));
  path_ = path();
  made_.push_back(path_);
}

// The lock lasts as long as the program: the log's last line may come after this object.
int RunFolder::open_log() {
  remove_leftovers(path_, TemporaryEntry::Kind::file);
  require(file_exists(file("run.json")) || !has_other_files(path_), "-run ", path_,
          ": this folder has other files and no run; name a new one, or use -run auto");
  const std::string name = file("train.log");
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  int log = open(name.c_str(), kHow | O_EXCL, 0666);
  if (log >= 0) {
    written_.push_back("train.log");
  } else if (errno == EEXIST) {
    log = open(name.c_str(), kHow, 0666);
  }
  if (log < 0) fail(name, ": cannot write: ", std::strerror(errno));
  // Some file systems have no locks.
  if (flock(log, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(log);
    fail("-run ", path_, ": another run is writing to this folder",
         file_exists(file("run.json")) ? ", " + described_run(file("run.json")) : "",
         "; end it first (its pid is in ", file("run.json"), "), or name another folder");
  }
  return log;
}

void RunFolder::make(const std::string& snapshot) {
  const std::string record = file("run.json");
  is_new_ = !file_exists(record);
  if (is_new_) {
    // open_log() found nothing but a log in this folder, so whatever gets these names is of this run.
    written_.insert(written_.end(), {"run.json", "metrics.jsonl", "metrics.csv", "tensorboard"});
    return write_run_record(record, flags_);
  }
  require(!snapshot.empty(), "-run ", path_, ": this folder already has a run, ",
          described_run(record),
          "; add -snapshot auto to continue it, or name another folder for a new run");
}

// From before this start: it cannot be meant for this run.
void RunFolder::remove_stale_request() {
  if (unlink(file("stop").c_str()) == 0)
    log_.info(cat("Removed ", file("stop"), ", which was there before this start."));
}

void RunFolder::take_snapshots(SolverParameter* solver) {
  prefix_ = solver->snapshot_prefix();
  if (make_folder(file("snapshots"))) written_.push_back("snapshots");
  solver->set_snapshot_prefix(file("snapshots/" + prefix_.substr(prefix_.rfind('/') + 1)));
}

void RunFolder::begin(SolverFile given, const SavedFlags& flags, Solver& solver) {
  SolverParameter& text = given.solver;
  const Context& context = solver.net().context();
  if (!flags.weights.empty()) {
    text.clear_weights();
    text.add_weights(flags.weights);
  }
  if (flags.level != 0 || !flags.stage.empty())
    *text.mutable_train_state() = solver.parameter().train_state();
  // Training from this file must not overwrite the snapshots of this folder.
  text.set_snapshot_prefix(prefix_);
  text.set_random_seed(static_cast<int64_t>(solver.seed()));
  const bool gpu = context.device() == Device::gpu;
  text.set_solver_mode(gpu ? SolverParameter::GPU : SolverParameter::CPU);
  text.clear_device_id();
  if (gpu) text.add_device_id(context.ordinal());
  if (!flags.precision.empty()) text.set_precision(flags.precision);
  const ExpandedSolver expanded = expanded_solver(given, path_);
  if (is_new_) {
    written_.insert(written_.end(), {"solver.prototxt", "run.lock"});
    for (const auto& net : expanded.nets) written_.push_back(net.first);
  }
  for (const auto& [name, net] : expanded.nets) write_file_atomically(file(name), net);
  std::string written = solver_text(expanded.solver);
  if (given.solver.max_epoch() > 0)
    written += cat("# max_iter: ", solver.parameter().max_iter(), " are these epochs here\n");
  write_file_atomically(file("solver.prototxt"), written);
  flags_["run"] = {path_};
  write_run_lock(path_, {flags_, folder_of(given.path), !is_new_}, solver);
  complete_run_record(file("run.json"), flags_,
                      {.net = solver.net().name(),
                       .device = gpu ? cat("GPU ", context.ordinal()) : "CPU",
                       .seed = solver.seed(),
                       .ranks = context.ranks(),
                       .resumed = !is_new_,
                       .iteration = solver.iteration()});
  begun_ = true;
}

Action RunFolder::action() {
  const Clock::time_point now = Clock::now();
  if (now - looked_ < kLookEvery) return Action::none;
  looked_ = now;
  const std::string request = file("stop");
  if (!file_exists(request)) return Action::none;
  unlink(request.c_str());
  log_.info(cat(request, " requests a stop: the run ends with a snapshot."));
  return Action::snapshot_stop;
}

}  // namespace crema
