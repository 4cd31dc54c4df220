#include "tools/pages/runs/page_run.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/strings.h"
#include "data/databases/class_names.h"
#include "tools/pages/runs/run_file.h"

namespace crema {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostPictures = 500, kMostFiles = 100, kMostBytes = size_t{64} << 20;

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

// "3 > 5 98%", as a run records its mistakes, in the form for pages.
std::string shown_caption(const std::string& caption, const std::vector<std::string>& classes) {
  int64_t label = 0, answer = 0;
  int percent = 0, length = 0;
  if (std::sscanf(caption.c_str(), "%" SCNd64 " > %" SCNd64 " %d%%%n", &label, &answer, &percent,
                  &length) != 3 ||
      length != static_cast<int>(caption.size()))
    return caption;
  return mistake_caption(label, answer, percent, classes);
}

PagePictures pictures_of(const Json& object, const std::vector<std::string>& classes) {
  PagePictures pictures{.title = object.value("title", "Pictures"),
                        .iteration = object.value("iteration", int64_t{-1})};
  std::set<std::string> seen;  // the same sample twice is shown once
  for (const Json& entry : object.at("pictures")) {
    const std::string source = entry.at("src");
    if (pictures.pictures.size() == kMostPictures) break;
    if (!is_picture(source) || !seen.insert(source).second) continue;
    pictures.pictures.push_back({source, shown_caption(entry.value("caption", ""), classes)});
  }
  return pictures;
}

using Counts = std::vector<std::vector<int64_t>>;

bool is_square(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](const auto& row) { return row.size() == counts.size(); });
}

}  // namespace

std::string mistake_caption(int64_t label, int64_t answer, int percent,
                            const std::vector<std::string>& classes) {
  const auto name = [&](int64_t number) {
    return number >= 0 && number < static_cast<int64_t>(classes.size()) ? classes[number]
                                                                        : cat(number);
  };
  return cat(name(label), " → ", name(answer), " ", percent, "%");
}

std::vector<PagePictures> read_pictures(const std::string& folder,
                                        const std::vector<std::string>& classes) {
  const std::string pictures = folder + "/pictures";
  std::vector<PagePictures> all;
  size_t room = kMostBytes;  // for all of them
  for (const std::string& name : names_in_run(pictures, kMostFiles)) {
    if (!ends_with(name, ".json")) continue;
    const std::string text = text_of_run_file(pictures + "/" + name, room);
    room -= text.size();
    try {
      all.push_back(pictures_of(Json::parse(text), classes));
    } catch (const Json::exception&) {
      continue;
    }
    if (all.back().pictures.empty()) all.pop_back();
  }
  return all;
}

std::vector<std::string> class_names_of_run(const Run& run, const std::string& folder,
                                            const std::string& flag, size_t classes) {
  const std::string of_folder = cat(folder, "/", kClassNamesFile);
  ClassNames names;
  if (!flag.empty()) {
    names = read_class_names(flag);
  } else if (is_run_file(folder + "/run.json") && is_run_file(of_folder)) {
    names = class_names_in(of_folder, text_of_run_file(of_folder, kMostBytes));  // made by hand
  } else {
    names = {cat("run ", run.id), split(run.identity("classes"), '\n')};
    // The names from its training data, which may differ from those of a test.
    if (classes > 0 && names.names.size() != classes) names.names.clear();
  }
  if (classes > 0)
    require_count(names, static_cast<int64_t>(classes), "the run's confusion matrix");
  return names.names;
}

size_t classes_of_confusion(const Run& run, const std::string& folder) {
  size_t classes = 0;
  for (const Metric& metric : run.metrics) {
    if (metric.kind == "confusion") classes = counts_of(metric, folder).size();
  }
  return classes;
}

Counts counts_of(const Metric& confusion, const std::string& folder) {
  if (!confusion.counts.empty()) return is_square(confusion.counts) ? confusion.counts : Counts();
  const std::string name = fs::path(confusion.text("file")).filename().string();
  if (name.empty()) return {};
  std::string text = text_of_run_file(folder + "/" + name, kMostBytes);
  if (text.empty()) text = text_of_run_file(folder + "/snapshots/" + name, kMostBytes);
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
