// Puts an expanded text together: its tokens, each with its origin, and what stands between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/expand/cursor.h"

namespace crema {

class Output {
 public:
  explicit Output(const std::string& path) : text_(path) {}

  // The blanks and comments before a token. They are written with the next token, as it may be that
  // this one is not. A comment on the line of the token before it is copied where `trailing` says so
  // and that token was written, one on a line of its own where `lines` does.
  void gap(std::string_view gap, bool trailing, bool lines);
  // What follows on this line belongs to something that was not written.
  void omit() { omitted_ = true; }

  void write(const Cursor& cursor, const Token& token) { write(token.text, cursor, token); }
  // `value` instead of what stands at `token`.
  void write(std::string_view value, const Cursor& cursor, const Token& token);

  // How many columns the lines of the source move to the right.
  int shift() const { return shift_; }
  void set_shift(int shift) { shift_ = shift; }
  // The column, from 0, in which the next token would stand.
  int column() const;

  size_t size() const { return text_.text().size(); }
  SourceText finish();

 private:
  std::string flush();

  SourceText text_;
  std::string trailing_;            // a comment behind the last token
  std::vector<std::string> lines_;  // empty lines and comments on lines of their own
  bool newline_ = false, space_ = false, omitted_ = false;
  int indent_ = 0, shift_ = 0;
};

// The column, from 0, of the token after a gap with a newline in it; none else.
std::optional<int> column_after(std::string_view gap);

}  // namespace crema
