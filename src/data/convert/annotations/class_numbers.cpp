#include "data/convert/annotations/class_numbers.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/given_file.h"
#include "data/lists/message_text.h"

namespace crema {

namespace {

std::optional<int> number_of(const std::string& name) {
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, problem] = std::from_chars(name.data(), end, number);
  if (problem != std::errc() || rest != end) return {};
  return number;
}

}  // namespace

LabelMap read_label_map(const std::string& path) {
  LabelMap map;
  const std::string error = parse_message(read_text(path), &map);
  if (!error.empty() || map.item_size() == 0) {
    const FileKind kind = kind_of(path);
    fail(path, ":", error, error.empty() ? "" : ";",
         " is not a label map: item { name: \"cat\" label: 1 display_name: \"cat\" } ...",
         kind.what == "a label map" ? "" : what_it_is(kind));
  }
  return map;
}

ClassNumbers::ClassNumbers(const std::string& path, bool check) {
  const LabelMap map = read_label_map(path);
  for (const LabelMapItem& item : map.item()) {
    named_by_numbers_ = named_by_numbers_ || number_of(item.name());
    const auto [label, is_new] = labels_.emplace(item.name(), item.label());
    require(is_new || (!check && label->second == item.label()), path, ": names \"", item.name(),
            "\" twice, for ", label->second, " and ", item.label());
    const auto [name, is_unused] = names_.emplace(item.label(), item.name());
    require(is_unused || !check, path, ": gives ", item.label(), " to \"", name->second,
            "\" and to \"", item.name(), "\"");
  }
}

ClassNumbers::ClassNumbers(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const int label = static_cast<int>(names_.size()) + 1;
    require(labels_.emplace(name, label).second, "two classes have the name \"", name, "\"");
    names_.emplace(label, name);
    named_by_numbers_ = named_by_numbers_ || number_of(name);
  }
}

const int* ClassNumbers::find(const std::string& name) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? nullptr : &found->second;
}

int ClassNumbers::of(const std::string& where, const std::string& name) const {
  if (const int* label = find(name)) return *label;
  std::vector<std::string> names;
  for (const auto& [known, number] : labels_) names.push_back(known);
  fail(where, ": the label map has no \"", name, "\"", did_you_mean(name, names));
}

int ClassNumbers::of_category(const std::string& where, const std::string& id) const {
  if (const int* label = find(id)) return *label;
  const std::optional<int> number = number_of(id);
  if (!number) return of(where, id);
  require(!named_by_numbers_, where, ": the label map has no \"", id, "\" among its names");
  require(name_of(*number), where, ": the label map has no label ", *number,
          ", nor a name of that number");
  return *number;
}

const std::string* ClassNumbers::name_of(int label) const {
  const auto found = names_.find(label);
  return found == names_.end() ? nullptr : &found->second;
}

std::vector<std::string> ClassNumbers::names() const {
  std::vector<std::string> all;
  if (names_.count(0) == 0) all.emplace_back("background");
  for (const auto& [label, name] : names_) {
    if (label != static_cast<int>(all.size())) return {};
    all.push_back(name);
  }
  return all;
}

}  // namespace crema
