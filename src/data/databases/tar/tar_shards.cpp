#include "data/databases/tar/tar_shards.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/tar/tar_reader.h"

namespace crema {
namespace {

constexpr uint64_t kMostShards = 1'000'000;

bool ends_as_tar(const std::string& path) { return ends_with(lower_case(path), ".tar"); }

bool ends_as_packed_tar(const std::string& path) {
  const std::string lower = lower_case(path);
  for (const char* const ending : {".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"}) {
    if (ends_with(lower, ending)) return true;
  }
  return false;
}

// "000..146" as its numbers, padded with zeros if one of the two begins with one. None if it is not
// a range.
std::optional<std::vector<std::string>> range_in(const std::string& text, const std::string& all) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return {};
  const std::string from = text.substr(0, dots), to = text.substr(dots + 2);
  const auto number = [&](const std::string& digits) {
    uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [at, problem] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || at != end || problem != std::errc())
      fail(all, ": found `{", text, "}` where a range of whole numbers was expected, {000..146}");
    return value;
  };
  const uint64_t first = number(from), last = number(to);
  require(first <= last, all, ": the range {", text, "} ends before it begins");
  require(last - first < kMostShards, all, ": the range {", text, "} is longer than ", kMostShards);
  const auto zero = [](const std::string& digits) {
    return digits.size() > 1 && digits.front() == '0';
  };
  const size_t width = zero(from) || zero(to) ? std::max(from.size(), to.size()) : 0;
  std::vector<std::string> numbers;
  for (uint64_t i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return numbers;
}

std::vector<std::string> choices_in(const std::string& text, const std::string& all) {
  if (text.find(',') != std::string::npos) return split(text, ',');
  if (auto range = range_in(text, all)) return *range;
  return {"{" + text + "}"};  // a name may have braces
}

std::vector<TarShard> shards_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::string packed;
  for (const std::string& name : list_folder(folder)) {
    if (starts_with(name, ".")) continue;
    if (ends_as_tar(name)) names.push_back(name);
    if (ends_as_packed_tar(name)) packed = name;
  }
  require(!names.empty() || packed.empty(), folder, ": has no .tar file, but ", packed,
          ", which is compressed, so its records cannot be read in any order; unpack it");
  require(!names.empty(), folder, ": has no .tar file");
  std::vector<TarShard> shards;
  for (const std::string& name : names) shards.push_back({name, folder + "/" + name});
  return shards;
}

void add_braces(const std::string& text, const std::string& folder, std::vector<TarShard>* shards) {
  const size_t brace = text.find('{');
  const size_t slash = brace == std::string::npos ? 0 : text.rfind('/', brace) + 1;  // npos + 1: 0
  for (const std::string& path : expand_braces(text))
    shards->push_back({path.substr(slash), find_file(path, folder)});
}

std::vector<TarShard> shards_of_list(const std::string& list) {
  std::vector<TarShard> shards;
  for (const std::string& line : split(read_text(list), '\n')) {
    const std::string entry(trim(line));
    if (entry.empty()) continue;
    if (entry.find('{') != std::string::npos) {
      add_braces(entry, folder_of(list), &shards);
    } else {
      shards.push_back({entry, find_file(entry, folder_of(list))});
    }
  }
  require(!shards.empty(), list, ": names no tar file; it should name one a line");
  std::set<std::string> paths;
  for (const TarShard& shard : shards) {
    require(paths.insert(shard.path).second, list, ": names ", shard.path, " twice");
    require(ends_as_tar(shard.path) || file_exists(shard.path), list, ": names \"", shard.path,
            "\", which is no file; it should name a tar file in each line");
  }
  return shards;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& text) {
  std::vector<std::string> made = {""};
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    const size_t close = std::min(rest.find('}', open), rest.size());
    const std::string before(close == rest.size() ? rest : rest.substr(0, open));
    std::vector<std::string> choices = {""};
    if (close < rest.size())
      choices = choices_in(std::string(rest.substr(open + 1, close - open - 1)), text);
    require(made.size() * choices.size() <= kMostShards, text, ": expands to more than ",
            kMostShards, " files");
    std::vector<std::string> longer;
    longer.reserve(made.size() * choices.size());
    for (const std::string& begin : made) {
      for (const std::string& choice : choices) longer.push_back(begin + before + choice);
    }
    made = std::move(longer);
    rest.remove_prefix(std::min(close + 1, rest.size()));
  }
  return made;
}

std::vector<TarShard> tar_shards(const std::string& source) {
  if (folder_exists(source)) return shards_in_folder(source);
  if (!file_exists(source) && source.find('{') != std::string::npos) {
    std::vector<TarShard> shards;
    add_braces(source, "", &shards);
    return shards;
  }
  if (ends_as_tar(source) || begins_as_tar(RandomAccessFile(source))) return {{"", source}};
  return shards_of_list(source);
}

bool looks_like_tar(const std::string& path) {
  const auto by_name = [](const std::string& name) {
    return ends_as_tar(name) || ends_as_packed_tar(name);
  };
  if (folder_exists(path)) {
    const std::vector<std::string> names = list_folder(path);
    return std::any_of(names.begin(), names.end(), by_name);
  }
  if (by_name(path)) return true;
  if (!ends_with(path, ".txt") || !file_exists(path)) return false;
  const RandomAccessFile list(path);
  std::string text(4096, '\0');
  text.resize(list.read(0, text.data(), text.size()));
  const std::string_view lines = trim(text);
  return by_name(std::string(trim(lines.substr(0, lines.find('\n')))));
}

std::string find_source(const std::string& source, const std::string& folder) {
  if (file_exists(source) || source.find('{') == std::string::npos)
    return find_file(source, folder);
  const std::string first = expand_braces(source).front();
  const std::string found = find_file(first, folder);
  return found.substr(0, found.size() - first.size()) + source;
}

}  // namespace crema
