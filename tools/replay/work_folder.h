// WorkFolder: a new folder for temporary files, which goes with this object, and when SIGINT, SIGTERM or SIGHUP ends the
// program.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "tools/runs/vanishing_folder.h"

namespace crema {

class WorkFolder {
 public:
  // Only one object at a time, made before the program starts other threads:
  // see Signals.
  explicit WorkFolder(const std::string& name);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return folder_.path(); }

 private:
  void wait();

  VanishingFolder folder_;
  std::atomic<bool> over_ = false;
  std::thread waiting_;
};

}  // namespace crema
