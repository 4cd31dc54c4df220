#include "tools/pages/runs/found_runs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4, kMostFolders = 20000;
constexpr const char* kMetrics = "metrics.jsonl";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers in names count as numbers.
bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [](const std::string& text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t from = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(from, at - from);
    };
    const std::string first = number(a, i), second = number(b, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  return a.size() - i < b.size() - j;
}

// For the given folder; those below have no slash at their end.
std::string own_name(const fs::path& folder) {
  std::error_code error;
  return fs::weakly_canonical(folder, error).filename().string() + "/";
}

struct Search {
  std::vector<FoundRuns> found{};
  int folders = 0;
};

// `shown` is `folder` as the user would write it. A run's own folders have no runs.
void look_into(const fs::path& folder, const fs::path& shown, const std::string& name, int depth,
               Search& search) {
  if (++search.folders > kMostFolders) return;
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(folder / kMetrics, error)))
    search.found.push_back(
        {name.empty() ? own_name(folder) : name, folder.string(), (shown / kMetrics).string()});
  if (depth == kDeepest || fs::exists(fs::symlink_status(folder / "run.json", error))) return;
  for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end && search.folders <= kMostFolders; at.increment(error)) {
    const std::string entry = at->path().filename().string();
    std::error_code unreadable;
    if (entry.starts_with(".") || at->is_symlink(unreadable) || !at->is_directory(unreadable))
      continue;
    look_into(at->path(), shown / entry, name.empty() ? entry : name + "/" + entry, depth + 1,
              search);
  }
}

// Without links; "" where it is not there.
std::string resolved(const std::string& folder) {
  std::error_code error;
  return fs::canonical(folder, error).string();
}

}  // namespace

std::vector<FoundRuns> find_runs_below(const std::string& folder, bool* whole) {
  Search search;
  if (const std::string from = resolved(folder); !from.empty())
    look_into(from, folder, "", 0, search);
  if (whole) *whole = search.folders <= kMostFolders;
  std::sort(search.found.begin(), search.found.end(),
            [](const FoundRuns& a, const FoundRuns& b) { return comes_before(a.name, b.name); });
  return search.found;
}

std::vector<FoundRuns> find_runs(const std::string& path) {
  if (!folder_exists(path)) return {{path, resolved(folder_of(path)), path}};
  const std::string own = (fs::path(path) / kMetrics).string();
  if (file_exists(own)) return {{path, resolved(path), own}};
  std::vector<FoundRuns> found = find_runs_below(path);
  require(!found.empty(), path, ": there is no ", kMetrics,
          " in this folder or its subfolders; `crema train` writes it next to its snapshots, and "
          "into the folder of -run");
  return found;
}

}  // namespace crema
