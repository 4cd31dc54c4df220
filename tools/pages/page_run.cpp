#include "tools/pages/page_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/strings.h"

namespace crema {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostPictures = 500, kMostBytes = size_t{64} << 20;

// Nothing that a browser would fetch or run.
bool is_picture(const std::string& source) {
  const size_t comma = source.find(',');
  if (!starts_with(source, "data:image/") || comma == std::string::npos) return false;
  const std::string kind = source.substr(11, comma - 11);
  return (kind == "png;base64" || kind == "bmp;base64" || kind == "jpeg;base64") &&
         std::all_of(source.begin() + comma + 1, source.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '+' || c == '/' || c == '=';
         });
}

PagePictures pictures_of(const Json& object) {
  PagePictures pictures{.title = object.value("title", "Pictures"),
                        .iteration = object.value("iteration", int64_t{-1})};
  std::set<std::string> seen;  // the same sample twice is shown once
  for (const Json& entry : object.at("pictures")) {
    const std::string source = entry.at("src");
    if (pictures.pictures.size() == kMostPictures) break;
    if (!is_picture(source) || !seen.insert(source).second) continue;
    pictures.pictures.push_back({source, entry.value("caption", "")});
  }
  return pictures;
}

std::string text_if_there(const std::string& path) {
  try {
    return file_exists(path) ? read_text(path, kMostBytes) : "";
  } catch (const std::exception&) {  // a page shows what can be read
    return "";
  }
}

using Counts = std::vector<std::vector<int64_t>>;

bool is_square(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](const auto& row) { return row.size() == counts.size(); });
}

}  // namespace

std::vector<PagePictures> read_pictures(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder + "/pictures", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".json") paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<PagePictures> all;
  for (const std::string& path : paths) {
    try {
      all.push_back(pictures_of(Json::parse(text_if_there(path))));
    } catch (const Json::exception&) {
      continue;
    }
    if (all.back().pictures.empty()) all.pop_back();
  }
  return all;
}

std::vector<std::string> class_names_beside(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& line : split(text_if_there(folder + "/labels.txt"), '\n'))
    names.emplace_back(trim(line));
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

Counts counts_of(const Metric& confusion, const std::string& folder) {
  if (!confusion.counts.empty()) return is_square(confusion.counts) ? confusion.counts : Counts();
  const std::string name = fs::path(confusion.text("file")).filename().string();
  if (name.empty()) return {};
  std::string text = text_if_there(folder + "/" + name);
  if (text.empty()) text = text_if_there(folder + "/snapshots/" + name);
  Counts counts;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    counts.emplace_back();
    for (const std::string& cell : split(line, ','))
      counts.back().push_back(std::strtoll(cell.c_str(), nullptr, 10));
  }
  return is_square(counts) ? counts : Counts();
}

}  // namespace crema
