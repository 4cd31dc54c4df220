#include "tools/flags/tensorboard_flag.h"

#include "base/error.h"
#include "base/files.h"
#include "tools/flags/flags.h"

namespace crema {

std::string tensorboard_folder(const std::string& beside) {
  require(FLAGS_tensorboard_histograms >= 0, "-tensorboard_histograms is ",
          FLAGS_tensorboard_histograms, ", it must be a number of iterations, or 0 for none");
  require(FLAGS_tensorboard_histograms == 0 || !FLAGS_tensorboard.empty(),
          "-tensorboard_histograms needs a folder to write to: -tensorboard DIR");
  const std::string folder =
      FLAGS_tensorboard == "auto" ? beside + "/tensorboard" : FLAGS_tensorboard;
  require(folder.empty() || folder_exists(folder) || !file_exists(folder), "-tensorboard ", folder,
          ": is a file; expected a folder, or a new name for one");
  return folder;
}

}  // namespace crema
