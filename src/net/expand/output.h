// Assembles an expanded text: its tokens, each with its origin, and the text between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/expand/cursor.h"

namespace crema {

class Output {
 public:
  explicit Output(const std::string& path) : text_(path) {}

  // The blanks and comments before a token. They are written with the next token, because this one
  // may be skipped. A comment on the line of the previous token is copied if `trailing` is set and
  // that token was written, one on its own line if `lines` is set.
  void gap(std::string_view gap, bool trailing, bool lines);
  // The rest of this line belongs to something that was not written.
  void omit() { omitted_ = true; }

  void write(const Cursor& cursor, const Token& token) { write(token.text, cursor, token); }
  // Writes `value` instead of the text at `token`.
  void write(std::string_view value, const Cursor& cursor, const Token& token);

  // How many columns the lines of the source move to the right.
  int shift() const { return shift_; }
  void set_shift(int shift) { shift_ = shift; }
  // The column, from 0, of the next token.
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

// The column, from 0, of the token after a gap with a newline in it; otherwise none.
std::optional<int> column_after(std::string_view gap);

}  // namespace crema
