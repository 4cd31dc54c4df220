#include "net/expand/output.h"

#include <algorithm>

#include "base/strings.h"

namespace crema {

std::optional<int> column_after(std::string_view gap) {
  const size_t newline = gap.rfind('\n');
  if (newline == std::string_view::npos) return std::nullopt;
  return static_cast<int>(gap.size() - newline - 1);
}

void Output::gap(std::string_view gap, bool trailing, bool lines) {
  if (gap.empty()) return;
  space_ = true;
  const std::vector<std::string> parts = split(gap, '\n');
  const std::string first(trim(parts[0]));
  if (trailing && !omitted_ && !first.empty()) {
    // A comment that opens the file has nothing before it.
    (size() == 0 ? lines_.emplace_back() : trailing_) = first;
  }
  if (parts.size() == 1) return;
  newline_ = true;
  omitted_ = false;
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::string_view comment = trim(parts[i]);
    if (comment.empty()) {
      if (lines_.empty() || !lines_.back().empty()) lines_.emplace_back();
    } else if (lines) {
      const auto indent = static_cast<int>(parts[i].find_first_not_of(" \t"));
      lines_.push_back(std::string(std::max(indent + shift_, 0), ' ') + std::string(comment));
    }
  }
  indent_ = std::max(*column_after(gap) + shift_, 0);
}

int Output::column() const {
  if (newline_ || size() == 0) return indent_;
  return column_after("\n" + text_.text()).value() + (space_ ? 1 : 0);
}

// The gap before the next token.
std::string Output::flush() {
  const bool first = size() == 0;
  std::string text;
  if (!trailing_.empty()) text += "  " + trailing_;
  if (newline_ || !trailing_.empty()) {
    if (!first) text += '\n';
    for (const std::string& line : lines_) {
      if (!line.empty() || !first || !text.empty()) text += line + '\n';
    }
    text += std::string(indent_, ' ');
  } else if (space_ && !first) {
    text += ' ';
  }
  trailing_.clear();
  lines_.clear();
  newline_ = space_ = omitted_ = false;
  return text;
}

void Output::write(std::string_view value, const Cursor& cursor, const Token& token) {
  const size_t offset = cursor.base + token.begin;
  // Text before a token has the origin of the token.
  if (const std::string before = flush(); !before.empty())
    text_.append(before, cursor.file, offset, cursor.context);
  text_.append(value, cursor.file, offset, cursor.context);
}

SourceText Output::finish() {
  while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  newline_ = true;
  indent_ = 0;
  const auto file = std::make_shared<const WrittenFile>(WrittenFile{text_.path(), ""});
  text_.append(flush(), file, 0, nullptr);
  return text_;
}

}  // namespace crema
