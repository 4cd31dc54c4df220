#include "net/syntax/syntax.h"

#include <algorithm>

#include "base/strings.h"
#include "base/visible.h"
#include "net/expand/output.h"

namespace crema {
namespace {

constexpr int kMaxDepth = 200;  // of blocks in each other

// Recursive descent over the tokens. by_indentation: where a block lacks its brace, indentation tells its end. A
// statement that begins a line no further to the right than the one that opened the block belongs outside.
class SyntaxReader {
 public:
  SyntaxReader(SyntaxTree* tree, bool by_indentation)
      : tree_(*tree), by_indentation_(by_indentation) {}

  // Returns whether each block has its brace.
  bool run() {
    while (!at_end()) statement(&tree_.file);
    return braces_match_;
  }

 private:
  using Kind = Token::Kind;

  const Token& token(int ahead = 0) const {
    const auto last = static_cast<int>(tree_.tokens.size()) - 1;
    return tree_.token(std::min(at_ + ahead, last));
  }
  bool at_end() const { return token().kind == Kind::end; }
  bool opens_block(int ahead = 0) const { return token(ahead).is("{") || token(ahead).is("<"); }
  std::string found() const {
    return at_end() ? "the end of the file" : cat("\"", visible(std::string(token().text)), "\"");
  }

  // Marks the current token, or, at the end of the file, the last one.
  template <typename... Parts>
  void mistake(const Parts&... parts) {
    const Token& marked = at_end() && at_ > 0 ? tree_.token(at_ - 1) : token();
    mistake_at(marked, parts...);
  }
  template <typename... Parts>
  void mistake_of(SyntaxMistake::Kind kind, const Parts&... parts) {
    const size_t before = tree_.mistakes.size();
    mistake(parts...);
    if (tree_.mistakes.size() > before) tree_.mistakes.back().kind = kind;
  }
  template <typename... Parts>
  void mistake_at(const Token& marked, const Parts&... parts) {
    const size_t end = marked.begin + marked.text.size();
    if (!tree_.mistakes.empty() && tree_.mistakes.back().end >= end) return;  // one for a place
    tree_.mistakes.push_back({marked.begin, end, cat(parts...)});
  }

  // --- statements ---------------------------------------------------------------------------------

  void statement(Block* block) {
    Statement s;
    s.all.begin = at_;
    const int around = column_;
    column_ = line_column(at_);
    read(&s);
    column_ = around;
    if (s.kind != Statement::Kind::junk && (token().is(",") || token().is(";"))) ++at_;
    s.all.end = at_;
    block->statements.push_back(std::move(s));
  }

  void read(Statement* s) {
    const auto& tokens = tree_.tokens;
    const auto at = static_cast<size_t>(at_);
    if (is_conflict_mark()) return conflict_mark(s);
    if (token().kind == Kind::variable) return assignment(s);
    if (starts_include(tokens, at)) return include(s);
    if (starts_repeat(tokens, at)) return repeat(s);
    if (starts_if(tokens, at)) return condition(s);
    if (starts_error(tokens, at)) {
      s->kind = Statement::Kind::error;
      at_ += 2;
      s->value = value();
      return;
    }
    field(s);
  }

  // Lines that git leaves where two versions differ.
  bool is_conflict_mark() const {
    const std::string_view text = tree_.text;
    const size_t begin = token().begin;
    if (begin > 0 && text[begin - 1] != '\n') return false;
    for (const std::string_view mark : {"<<<<<<<", "=======", ">>>>>>>"}) {
      const size_t end = begin + mark.size();
      if (text.substr(begin, mark.size()) == mark &&
          (end == text.size() || text[end] == ' ' || text[end] == '\n' || text[end] == '\r'))
        return true;
    }
    return false;
  }

  void conflict_mark(Statement* s) {
    const size_t begin = token().begin;
    do {
      ++at_;
    } while (!at_end() && !begins_line());
    s->all.end = at_;
    const Token& last = tree_.token(at_ - 1);
    tree_.mistakes.push_back(
        {begin, last.begin + last.text.size(),
         "a merge conflict was left in this file: keep one of the versions, and "
         "remove the lines with marks"});
  }

  void assignment(Statement* s) {
    s->kind = Statement::Kind::assignment;
    s->name = {at_, at_ + 1};
    ++at_;
    if (!token().is("=") && !token().is("?="))
      return mistake("expected = or ?= and a value after ", tree_.token(at_ - 1).text, ", found ",
                     found());
    ++at_;
    s->value = value();
  }

  void include(Statement* s) {
    s->kind = Statement::Kind::include;
    ++at_;
    if (token().is(":")) ++at_;
    s->value = value();
    if (token().is("{")) s->blocks.push_back(block());
  }

  void repeat(Statement* s) {
    s->kind = Statement::Kind::repeat;
    ++at_;
    s->value = {at_, at_};
    while (!at_end() && !token().is("{") && !ends_value(s->value.begin)) ++at_;
    s->value.end = at_;
    body(s, "what to repeat");
  }

  void condition(Statement* s) {
    s->kind = Statement::Kind::condition;
    while (true) {
      ++at_;  // if, or else
      if (token().is_word("if") && !s->blocks.empty()) ++at_;
      const int begin = at_;
      while (!at_end() && !token().is("{") && !ends_value(begin)) ++at_;
      if (s->blocks.empty()) s->value = {begin, at_};
      if (!body(s, "what the condition decides about")) return;
      if (!token().is_word("else")) return;
    }
  }

  bool body(Statement* s, const char* what) {
    if (token().is("{")) {
      s->blocks.push_back(block());
      return true;
    }
    mistake("expected \"{\" and ", what, ", found ", found());
    return false;
  }

  void field(Statement* s) {
    s->name = {at_, at_};
    if (token().kind == Kind::word) {
      ++at_;
    } else if (token().is("[")) {  // the name of an extension
      while (!at_end() && !token().is("]") && !(at_ > s->name.begin && begins_line())) ++at_;
      if (token().is("]")) ++at_;
    } else {
      return junk(s);
    }
    s->kind = Statement::Kind::field;
    s->name.end = at_;
    const bool colon = token().is(":");
    if (colon) ++at_;
    if (opens_block()) {
      s->blocks.push_back(block());
    } else if (!colon && token().is("=")) {
      mistake_of(SyntaxMistake::Kind::equals_sign, "expected \":\" before a value, found \"=\"");
      ++at_;
      s->value = value();
    } else if (!colon) {
      mistake_at(tree_.token(at_ - 1), "expected \":\" and a value, or a block in braces, after \"",
                 tree_.token(at_ - 1).text, "\"");
    } else if (token().is("[") && opens_block(1)) {
      list_of_blocks(s);
    } else if (const int end = end_of_path(); end > at_) {
      s->value = {at_, end};
      const Token &first = token(), &last = tree_.token(end - 1);
      const size_t text_end = last.begin + last.text.size();
      const std::string text = tree_.text.substr(first.begin, text_end - first.begin);
      tree_.mistakes.push_back({first.begin, text_end, cat("a text needs quotes: \"", text, "\""),
                                SyntaxMistake::Kind::unquoted_text});
      at_ = end;
    } else {
      s->value = value();
    }
  }

  // The end of a path without quotes, such as net.prototxt or ../train_lmdb; at_: there is none.
  int end_of_path() const {
    if (at_end() || begins_line()) return at_;
    bool has_dot = token().is(".") || token().is("..") || token().is("/");
    if (!has_dot && token().kind != Kind::word) return at_;
    int end = at_ + 1;
    for (; tree_.token(end).kind != Kind::end && tree_.token(end).gap.empty(); ++end) {
      const Token& next = tree_.token(end);
      if (next.kind == Kind::text || next.is("(") || next.is("{") || next.is("[")) return at_;
      if (next.is("}") || next.is(";") || next.is(",")) break;
      has_dot |= next.is(".");
    }
    return has_dot && end > at_ + 1 ? end : at_;
  }

  void list_of_blocks(Statement* s) {
    s->value = {at_, at_};
    ++at_;
    while (opens_block()) {
      s->blocks.push_back(block());
      if (token().is(",")) ++at_;
    }
    if (token().is("]")) {
      ++at_;
    } else {
      mistake("expected \"]\" at the end of the list, found ", found());
    }
    s->value.end = at_;
  }

  void junk(Statement* s) {
    if (token().is("}") || token().is(">")) {
      braces_match_ = false;
      mistake_of(SyntaxMistake::Kind::stray_brace, "\"", token().text, "\" closes no block");
    } else {
      mistake("expected the name of a field, found ", found());
    }
    ++at_;
    while (!at_end() && !begins_line() && token().kind != Kind::word && !token().is("}") &&
           token().kind != Kind::variable)
      ++at_;
    s->all.end = at_;
  }

  Block block() {
    Block block;
    block.open = at_;
    const bool angle = token().is("<");
    const std::string_view closing = angle ? ">" : "}";
    const int column = column_;
    ++at_;
    if (++depth_ > kMaxDepth) {
      mistake("too many blocks in each other");
      at_ = static_cast<int>(tree_.tokens.size()) - 1;
    }
    open_angles_ += angle ? 1 : 0;
    bool is_missing = false;
    while (!at_end() && !is_missing && !token().is(closing)) {
      is_missing = ends_by_indentation(column);
      if (!is_missing) statement(&block);
    }
    is_missing = is_missing || closes_outer(column);
    open_angles_ -= angle ? 1 : 0;
    --depth_;
    if (token().is(closing) && !is_missing) {
      block.close = at_;
      ++at_;
    } else if (depth_ < kMaxDepth) {
      braces_match_ = false;
      mistake_at(tree_.token(block.open), "this block is not closed: its \"", closing,
                 "\" is missing");
    }
    return block;
  }

  // Whether a brace begins a line where that of an outer block would stand.
  bool closes_outer(int column) const {
    return by_indentation_ && depth_ > 1 && token().is("}") && tree_.is_first_on_line(at_) &&
           line_column(at_) < column;
  }
  bool ends_by_indentation(int column) const {
    return by_indentation_ && token().kind == Kind::word && tree_.is_first_on_line(at_) &&
           line_column(at_) <= column && (token(1).is("{") || token(1).is(":"));
  }

  // --- values -------------------------------------------------------------------------------------

  bool begins_line() const { return tree_.is_first_on_line(at_); }

  // Whether the current token cannot go on with the value that began at `begin`.
  bool ends_value(int begin) const {
    if (at_end() || token().is("}") || token().is(";")) return true;
    if (at_ == begin) return false;
    return token().kind == Kind::word && (token(1).is(":") || token(1).is("{")) && begins_line();
  }

  // An operand, and those that operators join to it.
  Statement::Tokens value() {
    const int begin = at_;
    int cases = 0;
    do {
      while (token().is("-") || token().is("+") || token().is("!")) ++at_;
      if (!operand()) break;
      // An index, or the arguments of a function. After a blank a bracket is the next field, an extension.
      while ((token().is("[") && token().gap.empty()) ||
             (token().is("(") && tree_.token(at_ - 1).kind == Kind::word))
        brackets();
    } while (operation(&cases));
    if (at_ == begin)
      mistake_at(tree_.token(begin - 1), "expected a value after \"", tree_.token(begin - 1).text,
                 "\"");
    return {begin, at_};
  }

  bool operand() {
    const Kind kind = token().kind;
    if (token().is("[") || token().is("(")) {
      brackets();
      return true;
    }
    if (kind == Kind::text) {
      while (token().kind == Kind::text) {
        const std::string_view text = token().text;
        if (text.size() < 2 || text.back() != text.front())
          mistake_of(SyntaxMistake::Kind::open_text, "this text has no closing ", text.front());
        ++at_;
      }
      return true;
    }
    // A word in the next line that has a value of its own is a field.
    const bool is_field =
        kind == Kind::word && begins_line() && (token(1).is(":") || token(1).is("{"));
    if ((kind != Kind::word || is_field) && kind != Kind::number && kind != Kind::variable)
      return false;
    ++at_;
    return true;
  }

  // Moves past an operator between two operands. cases: of a ? that still lack their ":".
  bool operation(int* cases) {
    static constexpr std::string_view kOperators[] = {"+",  "-",  "*",  "/",  "//", "%",  "**",
                                                      "==", "!=", "<=", ">=", "&&", "||", "?"};
    if (is_conflict_mark()) return false;
    const bool angle = (token().is("<") || token().is(">")) && open_angles_ == 0;
    bool known = angle || (token().is(":") && *cases > 0);
    for (const std::string_view symbol : kOperators) known = known || token().is(symbol);
    if (!known) return false;
    *cases += token().is("?") ? 1 : token().is(":") ? -1 : 0;
    ++at_;
    return true;
  }

  void brackets() {
    const int open = at_;
    const std::string_view closing = token().is("[") ? "]" : ")";
    ++at_;
    for (int depth = 1; depth > 0; ++at_) {
      const bool is_outside = token().is("{") || token().is("}") ||
                              (token().kind == Kind::word && begins_line() && token(1).is(":"));
      if (at_end() || is_outside) {
        mistake_at(tree_.token(open), "expected \"", closing, "\" for this \"",
                   tree_.token(open).text, "\"");
        return;
      }
      if (token().is("[") || token().is("(")) ++depth;
      if (token().is("]") || token().is(")")) --depth;
    }
  }

  // The column of the first token of a token's line.
  int line_column(int index) const {
    while (index > 0 && !tree_.is_first_on_line(index)) --index;
    return column_after(tree_.token(index).gap).value_or(0);
  }

  SyntaxTree& tree_;
  int at_ = 0, depth_ = 0, open_angles_ = 0;
  bool by_indentation_, braces_match_ = true;
  int column_ = 0;  // where the current statement begins its first line
};

}  // namespace

SyntaxTree::SyntaxTree(std::string from) : text(std::move(from)), tokens(tokens_of(text)) {
  lines = {0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines.push_back(i + 1);
  }
  if (SyntaxReader(this, false).run()) return;
  file = {};
  mistakes.clear();
  SyntaxReader(this, true).run();
}

}  // namespace crema
