#include <google/protobuf/text_format.h>

#include <charconv>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/annotations.h"

namespace crema {
namespace {

std::optional<int> label_in(std::string_view text) {
  int label = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return {};
  return label;
}

void add_class(LabelMap& map, int label, const std::string& name, const std::string& shown) {
  LabelMapItem& item = *map.add_item();
  item.set_name(name);
  item.set_label(label);
  item.set_display_name(shown);
}

// Adds a line's class: `name`, or `name label`, optionally followed by `shown`.
void add_line(LabelMap& map, const std::string& where, std::string_view line, bool numbered,
              std::string_view delimiter) {
  if (!numbered) return add_class(map, map.item_size() + 1, std::string(line), std::string(line));
  const size_t end = line.find(delimiter);
  const std::string_view name = trim(line.substr(0, end)),
                         rest = end == std::string_view::npos
                                    ? std::string_view()
                                    : trim(line.substr(end + delimiter.size()));
  const size_t end_of_label = rest.find(delimiter);
  const std::optional<int> label = label_in(trim(rest.substr(0, end_of_label)));
  if (!label) {
    fail(where, ": has no label as the lines before; a line is `name`, or `name", delimiter,
         "label", delimiter, "name for people`");
  }
  const std::string_view shown = end_of_label == std::string_view::npos
                                     ? name
                                     : trim(rest.substr(end_of_label + delimiter.size()));
  add_class(map, *label, std::string(name), std::string(shown));
}

LabelMap map_of_names(const std::string& source, const std::string& delimiter) {
  LabelMap map;
  size_t number = 0;
  bool numbered = false;
  for (const std::string& text : split(read_text(source), '\n')) {
    ++number;
    const std::string_view line = trim(text);
    if (line.empty()) continue;
    if (map.item_size() == 0) {
      const size_t end = line.find(delimiter);
      const std::string_view rest =
          end == std::string_view::npos ? std::string_view() : line.substr(end + delimiter.size());
      numbered = label_in(trim(rest.substr(0, rest.find(delimiter)))).has_value();
    }
    add_line(map, cat(source, ":", number), line, numbered, delimiter);
  }
  require(map.item_size() > 0, source, ": names no class; a line is `name`");
  return map;
}

void check_unique(const std::string& source, const LabelMap& map) {
  std::set<std::string> names;
  std::set<int> labels;
  for (const LabelMapItem& item : map.item()) {
    require(!item.name().empty(), source, ": a class has no name");
    require(names.insert(item.name()).second, source, ": names \"", item.name(), "\" twice");
    require(labels.insert(item.label()).second, source, ": gives label ", item.label(),
            " twice, at last to \"", item.name(), "\"");
  }
}

}  // namespace

void create_label_map(const std::string& root, const std::string& source, const std::string& path,
                      const LabelMapOptions& options, Log& log) {
  require(!options.delimiter.empty(), "-delimiter: must not be empty");
  LabelMap classes;
  if (!options.format || *options.format == AnnotationFormat::yolo) {
    classes = map_of_names(source, options.delimiter);
  } else {
    const bool voc = *options.format == AnnotationFormat::voc;
    for (const std::string& name :
         voc ? voc_classes(root, read_pair_list(source)) : coco_classes(source))
      add_class(classes, classes.item_size() + 1, name, name);
    require(classes.item_size() > 0, source, ": not one of the annotations names a class");
  }
  LabelMap map;
  if (options.include_background) add_class(map, 0, "none_of_the_above", "background");
  map.MergeFrom(classes);
  check_unique(source, map);
  std::string text;
  google::protobuf::TextFormat::PrintToString(map, &text);
  if (file_exists(path) && read_text(path) == text) {
    log.info(cat(path, ": is there already, with the same ", map.item_size(), " labels"));
    return;
  }
  require(options.overwrite || !file_exists(path), path,
          ": exists and has other labels; -overwrite replaces it");
  write_file_atomically(path, text);
  log.info(cat(path, ": ", map.item_size(), " labels"));
}

}  // namespace crema
