#include "tools/runs/track_reader.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "base/system.h"
#include "tools/runs/detached_process.h"

namespace crema {

namespace {

constexpr auto kLookForWarnings = std::chrono::seconds(1);

// The package in a build or an installed folder (python/ next to tools/ or bin/), or in a wheel
// (bin/ inside the package).
std::string track_package() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* place : {"../python/crema/track", "../track"}) {
    const auto package = (program.parent_path() / place).lexically_normal();
    if (std::filesystem::exists(package / "__main__.py", error)) return package;
  }
  fail("this installation of the program has no Python package");
}

// $PYTHON, that of the virtual environment, or python3 of the path. It may lack NumPy.
std::string python_for_tracking() {
  if (const std::string chosen = environment("PYTHON"); !chosen.empty()) return chosen;
  std::error_code error;
  const std::string of_environment = environment("VIRTUAL_ENV") + "/bin/python3";
  if (!environment("VIRTUAL_ENV").empty() && std::filesystem::exists(of_environment, error))
    return of_environment;
  for (const std::string& folder : split(environment("PATH"), ':'))
    if (!folder.empty() && std::filesystem::exists(folder + "/python3", error))
      return folder + "/python3";
  fail("there is no python3 on the path; the variable PYTHON names one");
}

}  // namespace

TrackReader::TrackReader(Log& log, std::string folder, std::string names)
    : log_(log), folder_(std::move(folder)), names_(std::move(names)) {
  for (const std::string& name : split(names_, ','))
    require(name == "mlflow" || name == "wandb", "-track ", names_,
            ": expected mlflow, wandb or mlflow,wandb");
}

void TrackReader::start() {
  try {
    std::filesystem::create_directories(folder_ + "/track");
    std::error_code none;
    const auto size = std::filesystem::file_size(log_path(), none);
    copied_ = none ? 0 : size;
    const std::string package = track_package();
    start_detached({python_for_tracking(), package, folder_, "-to", names_}, log_path());
    started_ = true;
    log_.info(
        cat("-track ", names_, ": the log of the process that sends the run is ", log_path()));
  } catch (const std::exception& error) {
    log_.warning(cat("-track ", names_, ": ", error.what(),
                     ". The run is not sent; later do so with: python3 -m crema.track ", folder_,
                     " -to ", names_));
  }
}

void TrackReader::copy_warnings() {
  if (!started_ || Clock::now() - looked_ < kLookForWarnings) return;
  looked_ = Clock::now();
  std::ifstream file(log_path(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(copied_));
  for (std::string line; std::getline(file, line) && !file.eof(); copied_ += line.size() + 1) {
    constexpr std::string_view kWarning = "warning: ";
    if (starts_with(line, std::string(kWarning)))
      log_.warning(cat("-track ", names_, ": ", line.substr(kWarning.size())));
  }
}

void TrackReader::read(const Event& event) {
  if (std::get_if<event::Start>(&event)) {
    start();
  } else if (std::get_if<event::Step>(&event)) {
    copy_warnings();
  } else if (std::get_if<event::End>(&event)) {
    looked_ = {};
    copy_warnings();
  }
}

}  // namespace crema
