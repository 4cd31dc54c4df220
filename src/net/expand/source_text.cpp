#include "net/expand/source_text.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace crema {

namespace {

// Adds the offsets of the lines that begin in `part`, which begins at `offset`.
void add_lines(std::string_view part, size_t offset, std::vector<size_t>* lines) {
  for (size_t at = 0; (at = part.find('\n', at)) != std::string_view::npos;)
    lines->push_back(offset + ++at);
}

}  // namespace

WrittenFile::WrittenFile(std::string path_of_it, std::string its_text)
    : path(std::move(path_of_it)), text(std::move(its_text)), lines{0} {
  add_lines(text, 0, &lines);
}

std::string WrittenFile::where(size_t offset) const {
  const auto next = std::upper_bound(lines.begin(), lines.end(), offset);
  return cat(path, ":", next - lines.begin(), ":", offset - *(next - 1) + 1);
}

SourceText::SourceText(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  const auto file = std::make_shared<const WrittenFile>(WrittenFile{path_, text_});
  parts_.push_back({0, file, 0, nullptr});
  add_lines(text_, 0, &lines_);
}

void SourceText::append(std::string_view part, const std::shared_ptr<const WrittenFile>& file,
                        size_t offset, const std::shared_ptr<const std::string>& context) {
  expanded_ = true;
  parts_.push_back({text_.size(), file, offset, context});
  add_lines(part, text_.size(), &lines_);
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
  if (line >= std::ssize(lines_)) return text_.size();
  size_t begin = lines_[static_cast<size_t>(std::max(line, 0))];
  constexpr int kTab = 8;
  int display = 0;
  while (display < display_column && begin < text_.size()) {
    display += text_[begin] == '\t' ? kTab - display % kTab : 1;
    ++begin;
  }
  return begin;
}

}  // namespace crema
