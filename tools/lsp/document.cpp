#include "tools/lsp/document.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/error.h"
#include "base/strings.h"

namespace crema {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
// Characters outside the first 65,536, of four bytes, take two units.
size_t units_of(char first) { return static_cast<unsigned char>(first) >= 0xF0 ? 2 : 1; }

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::string path_of_uri(const std::string& uri) {
  constexpr std::string_view kFile = "file://";
  if (!starts_with(uri, kFile)) return "";
  std::string path;
  for (size_t i = std::min(uri.find('/', kFile.size()), uri.size()); i < uri.size(); ++i) {
    const int high = uri[i] == '%' && i + 2 < uri.size() ? hex(uri[i + 1]) : -1;
    const int low = high >= 0 ? hex(uri[i + 2]) : -1;
    path += low >= 0 ? static_cast<char>(16 * high + low) : uri[i];
    if (low >= 0) i += 2;
  }
  return path;
}

std::string uri_of_path(const std::string& path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::strchr("/-._~", c)) {
      uri += c;
    } else {
      uri += '%';
      uri += kDigits[byte / 16];
      uri += kDigits[byte % 16];
    }
  }
  return uri;
}

Document::Document(std::string uri, std::string text)
    : uri_(std::move(uri)), path_(path_of_uri(uri_)) {
  set_text(std::move(text));
}

void Document::set_text(std::string text) {
  tree_ = std::make_unique<const SyntaxTree>(std::move(text));
}

Document::Edit Document::change(const Json& change) {
  std::string inserted = change.at("text");
  Edit edit{0, text().size(), inserted.size()};
  if (!change.contains("range")) {
    set_text(std::move(inserted));
    return edit;
  }
  const Json& range = change["range"];
  const size_t begin = offset_of(range.at("start")), end = offset_of(range.at("end"));
  require(begin <= end, "a change ends before it begins");
  set_text(text().substr(0, begin) + inserted + text().substr(end));
  edit.begin = begin;
  edit.end = end;
  return edit;
}

Json Document::position(size_t offset) const {
  offset = std::min(offset, text().size());
  const size_t line = tree_->line_of(offset);
  size_t column = 0;
  for (size_t i = tree_->lines[line]; i < offset; ++i)
    column += continues(text()[i]) ? 0 : units_of(text()[i]);
  return {{"line", line}, {"character", column}};
}

Json Document::range(size_t begin, size_t end) const {
  return {{"start", position(begin)}, {"end", position(end)}};
}

size_t Document::offset_of(const Json& position) const {
  return offset_of(position.at("line").get<size_t>(), position.at("character").get<size_t>());
}

size_t Document::offset_of(size_t line, size_t column) const {
  if (line >= tree_->lines.size()) return text().size();
  const size_t end = line + 1 < tree_->lines.size() ? tree_->lines[line + 1] - 1 : text().size();
  size_t at = tree_->lines[line];
  for (size_t units = 0; at < end && units < column;) {
    units += units_of(text()[at]);
    do {
      ++at;
    } while (at < end && continues(text()[at]));
  }
  return at;
}

size_t Document::offset_at(size_t line, size_t column) const {
  if (line == 0 || line > tree_->lines.size()) return text().size();
  return std::min(tree_->lines[line - 1] + column - 1, text().size());
}

}  // namespace crema
