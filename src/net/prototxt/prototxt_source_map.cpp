#include "net/prototxt/prototxt_source_map.h"

#include <google/protobuf/descriptor.h>

#include <charconv>
#include <utility>

#include "base/strings.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

// "kernel_size[1]" -> "kernel_size", 1; without an index -1.
std::pair<std::string, int> field_and_index(std::string_view part) {
  const size_t bracket = part.find('[');
  int index = -1;
  if (bracket != std::string_view::npos) {
    std::from_chars(part.data() + bracket + 1, part.data() + part.size(), index);
  }
  return {std::string(part.substr(0, bracket)), index};
}

}  // namespace

SourceMap::SourceMap(SourceText text, const pb::Descriptor* root, std::unique_ptr<Tree> tree)
    : text_(std::move(text)), root_(root), tree_(std::move(tree)) {}

std::optional<SourceMap::Location> SourceMap::find(std::string_view path) const {
  const Tree* tree = tree_.get();
  const pb::Descriptor* type = root_;
  while (tree && type) {
    const size_t dot = path.find('.');
    auto [name, index] = field_and_index(path.substr(0, dot));
    const pb::FieldDescriptor* field = type->FindFieldByName(name);
    if (!field) return std::nullopt;
    index = field->is_repeated() ? std::max(index, 0) : -1;
    if (dot == std::string_view::npos) {
      auto place = tree->GetLocation(field, index);
      // A list in brackets has one position for all its values.
      if (place.line < 0 && index > 0) place = tree->GetLocation(field, 0);
      if (place.line < 0) return std::nullopt;
      return place;
    }
    tree = tree->GetTreeForNested(field, index);
    type = field->message_type();
    path.remove_prefix(dot + 1);
  }
  return std::nullopt;
}

std::string SourceMap::where(std::string_view path) const {
  while (!path.empty()) {
    if (const auto place = find(path)) return text_.where(place->line, place->column);
    const size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return text_.path();
}

}  // namespace crema
