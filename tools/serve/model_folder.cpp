#include "tools/serve/model_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace crema {

std::vector<FoundModel> find_models(const std::string& folder) {
  require(folder_exists(folder), folder, ": there is no such folder");
  std::vector<FoundModel> found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    const std::filesystem::path path = entry.path();
    std::error_code ignored;
    if (!entry.is_directory(ignored)) continue;
    const auto file = [&](const char* name) {
      const std::filesystem::path at = path / name;
      return std::filesystem::is_regular_file(at, ignored) ? at.string() : std::string();
    };
    FoundModel model{path.filename().string(), file("net.prototxt"), file("net.caffemodel"),
                     file("labels.txt")};
    if (model.net.empty()) model.net = file("deploy.prototxt");
    if (model.net.empty()) continue;
    require(!model.weights.empty(), path.string(), ": has ",
            std::filesystem::path(model.net).filename().string(), " but no net.caffemodel");
    found.push_back(std::move(model));
  }
  require(!problem, folder, ": cannot be read: ", problem.message());
  require(!found.empty(), folder,
          ": no folder in it has net.prototxt (or deploy.prototxt) and net.caffemodel");
  std::sort(found.begin(), found.end(),
            [](const FoundModel& a, const FoundModel& b) { return a.name < b.name; });
  return found;
}

}  // namespace crema
