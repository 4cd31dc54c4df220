// The sources of the manual's site: pages in Markdown, which MkDocs makes a site of.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// An entry of the navigation: a page, or a section with entries.
struct NavEntry {
  std::string title, page{};  // "": a section
  std::vector<NavEntry> entries{};
};

class Site {
 public:
  // Adds a file under docs/, such as "layers/ReLU.md".
  void add(const std::string& path, std::string text) { files_[path] = std::move(text); }
  bool has(const std::string& path) const { return files_.count(path) > 0; }
  void append(const std::string& path, const std::string& text) { files_.at(path) += text; }

  std::vector<NavEntry> nav;

  // Writes docs/ and mkdocs.yml into the folder.
  void write(const std::string& folder) const;

 private:
  std::map<std::string, std::string> files_;
};

// Files embedded at build time.
std::string_view manual_config_bytes();  // mkdocs.yml without the navigation
std::string_view manual_style_bytes();
std::string_view manual_worker_bytes();

// The parts of the manual. `source` is a folder with the project's pages: the source tree, or
// share/crema of an installed program.
void add_layer_pages(const std::string& source, Site* site);
void add_field_pages(const std::string& source, Site* site);
void add_verb_pages(Site* site);
void add_error_page(Site* site);
// README.md and all pages that it leads to, with the files that these show.
void add_written_pages(const std::string& source, Site* site);
// Drawings and figures for the pages of models, and the gallery.
void add_model_pages(const std::string& source, Site* site);

}  // namespace crema
