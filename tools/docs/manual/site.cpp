#include "tools/docs/manual/site.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace crema {

namespace {

// As a string of YAML.
std::string yaml_of(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "\"";
}

// Without waiting for the disk for each of hundreds of files: they can be written again.
void write_page(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  require(file.good(), path, ": cannot write: ", std::strerror(errno));
}

void append_nav(const std::vector<NavEntry>& entries, const std::string& indent,
                std::string* text) {
  for (const NavEntry& entry : entries) {
    *text += cat(indent, "- ");
    if (entry.title.empty()) {
      *text += yaml_of(entry.page) + "\n";
    } else {
      *text += cat(yaml_of(entry.title), ":",
                   entry.entries.empty() ? " " + yaml_of(entry.page) : "", "\n");
    }
    append_nav(entry.entries, indent + "    ", text);
  }
}

}  // namespace

void Site::write(const std::string& folder) const {
  for (const auto& [path, text] : files_) {
    const std::string file = folder + "/docs/" + path;
    std::filesystem::create_directories(folder_of(file));
    write_page(file, text);
  }
  std::string config(manual_config_bytes());
  config += "nav:\n";
  append_nav(nav, "  ", &config);
  write_page(folder + "/mkdocs.yml", config);
}

}  // namespace crema
