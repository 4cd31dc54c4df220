#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

Json location(const Document& document, const NamePlace& place) {
  return {{"uri", document.uri()}, {"range", document.range(place.begin, place.end)}};
}

}  // namespace

Json definition_at(const Document& document, size_t offset) {
  const Name name = name_at(document.tree(), offset);
  if (name.kind == Name::Kind::file) {
    const std::string path =
        starts_with(name.text, "/") ? name.text : folder_of(document.path()) + "/" + name.text;
    if (document.path().empty() || !file_exists(path)) return nullptr;
    return {{"uri", uri_of_path(path)}, {"range", Document("", "").range(0, 0)}};
  }
  // The last one before, as blobs that are written in place have several; or else the first.
  std::optional<NamePlace> found;
  for (const NamePlace& place : places_of(document.tree(), name)) {
    if (place.writes && (!found || place.end <= offset)) found = place;
  }
  return found ? location(document, *found) : Json(nullptr);
}

Json references_at(const Document& document, size_t offset) {
  Json all = Json::array();
  for (const NamePlace& place : places_of(document.tree(), name_at(document.tree(), offset)))
    all.push_back(location(document, place));
  return all;
}

Json renamed_at(const Document& document, size_t offset, const std::string& name) {
  const Name old = name_at(document.tree(), offset);
  require(old.kind == Name::Kind::blob || old.kind == Name::Kind::variable,
          "only blobs and variables can get another name");
  const bool fits = old.kind == Name::Kind::blob
                        ? !name.empty() && name.find_first_of("\"'\\\n$") == std::string::npos
                        : !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                              std::all_of(name.begin(), name.end(), [](char c) {
                                return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
                              });
  require(fits, "\"", name, "\" is no name of a ",
          old.kind == Name::Kind::blob ? "blob" : "variable");
  Json edits = Json::array();
  for (const NamePlace& place : places_of(document.tree(), old))
    edits.push_back({{"range", document.range(place.begin, place.end)}, {"newText", name}});
  return {{"changes", {{document.uri(), edits}}}};
}

}  // namespace crema
