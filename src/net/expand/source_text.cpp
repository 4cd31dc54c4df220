#include "net/expand/source_text.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace crema {

Position position_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(before.size() - begin) + 1};
}

std::string WrittenFile::where(size_t offset) const {
  const Position place = position_of(text, offset);
  return cat(path, ":", place.line, ":", place.column);
}

SourceText::SourceText(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  const auto file = std::make_shared<const WrittenFile>(WrittenFile{path_, text_});
  parts_.push_back({0, file, 0, nullptr});
}

void SourceText::append(std::string_view part, const std::shared_ptr<const WrittenFile>& file,
                        size_t offset, const std::shared_ptr<const std::string>& context) {
  expanded_ = true;
  parts_.push_back({text_.size(), file, offset, context});
  text_ += part;
}

std::string SourceText::where(int line, int display_column) const {
  const size_t offset = offset_of(line, display_column);
  if (parts_.empty()) return path_;
  auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                               [](size_t value, const Part& p) { return value < p.begin; });
  if (part != parts_.begin()) --part;
  if (!part->file) return path_;
  // For a computed value only the beginning is known.
  const size_t inside = expanded_ ? 0 : offset - part->begin;
  const std::string place = part->file->where(part->offset + inside);
  return part->context ? cat(place, " (", *part->context, ")") : place;
}

size_t SourceText::offset_of(int line, int display_column) const {
  size_t begin = 0;
  for (int i = 0; i < line; ++i) {
    const size_t newline = text_.find('\n', begin);
    if (newline == std::string::npos) return text_.size();
    begin = newline + 1;
  }
  constexpr int kTab = 8;
  int display = 0;
  while (display < display_column && begin < text_.size()) {
    display += text_[begin] == '\t' ? kTab - display % kTab : 1;
    ++begin;
  }
  return begin;
}

}  // namespace crema
