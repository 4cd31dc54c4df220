#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

Json location(const Document& document, const NamePlace& place) {
  return {{"uri", document.uri()}, {"range", document.range(place.begin, place.end)}};
}

// The last one before, as blobs that are written in place have several; or else the first.
std::optional<NamePlace> defining(const Document& document, const Name& name, size_t offset) {
  std::optional<NamePlace> found;
  for (const NamePlace& place : places_of(document.tree(), name)) {
    if (place.writes && (!found || place.end <= offset)) found = place;
  }
  return found;
}

const char* kind_of(const Name& name) {
  return name.kind == Name::Kind::blob       ? "blob"
         : name.kind == Name::Kind::variable ? "variable"
         : name.kind == Name::Kind::layer    ? "layer"
                                             : "parameter";
}

bool can_be(const Name& old, const std::string& name) {
  if (old.kind != Name::Kind::variable)
    return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
      return std::iscntrl(static_cast<unsigned char>(c)) || std::strchr("\"'\\$", c);
    });
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

}  // namespace

Json definition_at(const Document& document, size_t offset, const OpenFiles& files) {
  const Name name = name_at(document.tree(), offset);
  if (name.kind == Name::Kind::none) return nullptr;
  if (name.kind == Name::Kind::file) {
    const std::string path = included_path(document, name.text);
    if (document.path().empty() || !file_exists(path)) return nullptr;
    return {{"uri", uri_of_path(path)}, {"range", Document("", "").range(0, 0)}};
  }
  if (const auto here = defining(document, name, offset)) return location(document, *here);
  for (const auto& other : files.sharing(document, name)) {
    if (other->uri() == document.uri()) continue;
    if (const auto there = defining(*other, name, 0)) return location(*other, *there);
  }
  return nullptr;
}

Json references_at(const Document& document, size_t offset, const OpenFiles& files) {
  Json all = Json::array();
  const Name name = name_at(document.tree(), offset);
  if (name.kind == Name::Kind::none || name.kind == Name::Kind::file) return all;
  for (const auto& file : files.sharing(document, name)) {
    for (const NamePlace& place : places_of(file->tree(), name))
      all.push_back(location(*file, place));
  }
  return all;
}

Json renamed_at(const Document& document, size_t offset, const std::string& name,
                const OpenFiles& files) {
  const Name old = name_at(document.tree(), offset);
  require(old.kind != Name::Kind::none && old.kind != Name::Kind::file,
          "only blobs, layers, shared parameters and variables can get another name");
  require(can_be(old, name), "\"", visible(name), "\" is no name of a ", kind_of(old));
  Json changes = Json::object();
  for (const auto& file : files.sharing(document, old)) {
    const std::vector<NamePlace> taken = places_of(file->tree(), {old.kind, name});
    if (name != old.text && !taken.empty())
      fail(file->path(), ":", file->tree().place(taken[0].begin), ": there is a ", kind_of(old),
           " \"", name, "\" already");
    Json edits = Json::array();
    for (const NamePlace& place : places_of(file->tree(), old))
      edits.push_back({{"range", file->range(place.begin, place.end)}, {"newText", name}});
    changes[file->uri()] = std::move(edits);
  }
  return {{"changes", std::move(changes)}};
}

}  // namespace crema
