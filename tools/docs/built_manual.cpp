#include "tools/docs/built_manual.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/system.h"
#include "layers/layer_types.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// With the machine's name, so that a terminal on another one does not look for the file.
std::string file_address(const std::string& path) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string address = cat("file://", host);
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    address += plain ? std::string(1, c) : "%" + hex_of(static_cast<unsigned char>(c), 2);
  }
  return address;
}

std::vector<std::string> folders_of_manual() {
  if (const std::string own = environment("CREMA_MANUAL"); !own.empty()) return {own};
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem).parent_path();
  if (problem) return {};
  // A build may be in build/ or in build/release/.
  return {program / "../share/doc/crema/manual", program / "../manual/site",
          program / "../../manual/site"};
}

}  // namespace

std::string address_of_layer(const std::string& type) {
  const std::vector<std::string> types = layer_types();
  if (std::find(types.begin(), types.end(), type) == types.end()) return "";
  for (const std::string& folder : folders_of_manual()) {
    const std::string page = without_slash(folder) + "/layers/" + type + ".html";
    if (starts_with(folder, "https://") || starts_with(folder, "http://")) return page;
    std::error_code problem;
    const fs::path path = fs::weakly_canonical(fs::absolute(page), problem);
    if (!problem && fs::is_regular_file(path, problem)) return file_address(path);
  }
  return "";
}

}  // namespace crema
