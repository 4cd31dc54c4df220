// The pages that people wrote: README.md and all that it leads to, with links that fit the site.
#include <deque>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "tools/docs/manual/site.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = 4 << 20;

// MkDocs leaves out folders whose names begin with a dot.
std::string site_path(const std::string& path) {
  return starts_with(path, ".github/") ? "project/" + path.substr(8) : path;
}

bool is_page(const std::string& path) { return ends_with(path, ".md"); }

// Reads pages from `source`, and rewrites their links.
class PageReader {
 public:
  PageReader(const std::string& source, Site* site) : source_(source), site_(site) {
    enqueue("README.md");
  }

  // All pages, in the order in which links lead to them.
  std::vector<std::string> read() {
    std::vector<std::string> pages;
    while (!waiting_.empty()) {
      const std::string page = waiting_.front();
      waiting_.pop_front();
      site_->add(site_path(page), rewritten(read_text(source_ + "/" + page), page));
      pages.push_back(page);
    }
    return pages;
  }

 private:
  void enqueue(const std::string& page) {
    if (known_.insert(page).second) waiting_.push_back(page);
  }

  // Outside code, where Markdown's signs mean nothing.
  std::string rewritten(const std::string& text, const std::string& page) {
    std::string out;
    bool fence = false, blank = true;
    for (const std::string& line : split(text, '\n')) {
      if (starts_with(line, "```")) fence = !fence;
      const bool code = fence || (blank && starts_with(line, "    "));
      if (!code) blank = trim(line).empty();
      out += (code ? line : with_links(line, page)) + "\n";
    }
    return out;
  }

  std::string with_links(const std::string& line, const std::string& page) {
    std::string out;
    for (size_t at = 0; at < line.size();) {
      // A link's text may hold code, so only code without a link in it is skipped.
      const size_t link = std::min(line.find("](", at), line.find("src=\"", at));
      if (link == std::string::npos) return out + line.substr(at);
      const bool image = line[link] == 's';
      const size_t begin = link + (image ? 5 : 2), end = line.find(image ? '"' : ')', begin);
      if (end == std::string::npos) return out + line.substr(at);
      const std::string target = line.substr(begin, end - begin);
      const std::string to = new_target(target, page);
      out += line.substr(at, link - at);
      if (!to.empty()) {
        out += line.substr(link, begin - link) + to + line[end];
      } else if (const size_t open = out.rfind('['); open != std::string::npos) {
        out.erase(open, 1);  // the text stays, without a link
      }
      at = end + 1;
    }
    return out;
  }

  // "": there is nothing to link to.
  std::string new_target(const std::string& target, const std::string& page) {
    const size_t hash = target.find('#');
    const std::string path = target.substr(0, hash);
    const std::string anchor = hash == std::string::npos ? "" : target.substr(hash);
    if (path.empty() || path.find(':') != std::string::npos) return target;
    std::string found = (fs::path(page).parent_path() / path).lexically_normal().string();
    if (starts_with(found, "..") || starts_with(found, "/")) return "";
    if (folder_exists(source_ + "/" + found)) found = (fs::path(found) / "README.md").string();
    if (!file_exists(source_ + "/" + found)) return "";
    if (is_page(found)) {
      enqueue(found);
    } else if (!site_->has(site_path(found))) {
      site_->add(site_path(found), read_file(source_ + "/" + found, kLargestFile));
    }
    const fs::path here = fs::path(site_path(page)).parent_path();
    return fs::path(site_path(found)).lexically_relative(here.empty() ? "." : here).string() +
           anchor;
  }

  std::string source_;
  Site* site_;
  std::set<std::string> known_;
  std::deque<std::string> waiting_;
};

// The first heading, up to a colon.
std::string heading_of(const std::string& text, const std::string& page) {
  for (const std::string& line : split(text, '\n')) {
    if (starts_with(line, "# ")) return line.substr(2, line.find(": ") - 2);
  }
  return page;
}

}  // namespace

void add_written_pages(const std::string& source, Site* site) {
  const std::string start = source + "/README.md";
  require(file_exists(start), start,
          ": no such file; give a folder with Crema's pages: crema docs -output DIR FOLDER");
  PageReader reader(source, site);
  NavEntry guide{"Guide", "", {}}, models{"Models", "", {}}, inside{"Inside Crema", "", {}};
  const std::string first = read_text(start);
  for (const std::string& page : reader.read()) {
    if (page == "README.md") continue;
    NavEntry entry{heading_of(read_text(source + "/" + page), page), site_path(page), {}};
    const bool direct = first.find("](" + page) != std::string::npos;
    const bool of_model = starts_with(page, "models/");
    (of_model ? models : direct ? guide : inside).entries.push_back(std::move(entry));
  }
  site->nav.insert(site->nav.begin(), {{"Crema", "README.md", {}}, std::move(guide)});
  site->nav.push_back(std::move(models));
  site->nav.push_back(std::move(inside));
}

}  // namespace crema
