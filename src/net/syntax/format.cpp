#include "net/syntax/format.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "net/expand/output.h"

namespace crema {
namespace {

constexpr int kWidth = 130, kStep = 2;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// What is between two tokens: a comment behind the first, then lines, each a comment or empty.
struct Gap {
  std::string trailing;
  std::vector<std::string> lines;
  bool has_newline = false;

  explicit Gap(std::string_view gap) {
    for (size_t begin = 0; begin <= gap.size();) {
      const size_t end = std::min(gap.find('\n', begin), gap.size());
      std::string_view line = gap.substr(begin, end - begin);
      while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
      while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
      const bool is_last = end == gap.size();
      if (begin == 0) {
        trailing = line;
      } else if (!line.empty() || (!is_last && (lines.empty() || !lines.back().empty()))) {
        lines.emplace_back(line);
      }
      has_newline = has_newline || !is_last;
      begin = end + 1;
    }
  }
  bool has_comment() const {
    return !trailing.empty() || std::any_of(lines.begin(), lines.end(),
                                            [](const std::string& line) { return !line.empty(); });
  }
};

// The lines written so far. Comments behind code are lined up where they follow each other.
class Lines {
 public:
  void begin(int indent) { lines_.push_back({indent, "", ""}); }
  void add(std::string_view text) { lines_.back().code += text; }
  void comment(const std::string& text) {
    std::string& all = lines_.back().comment;
    all += all.empty() ? text : " " + text;
  }
  bool none() const { return lines_.empty(); }
  // Nothing may follow on the current line.
  bool is_ended() const { return none() || !lines_.back().comment.empty(); }
  int indent() const { return lines_.back().indent; }
  int column() const { return indent() + static_cast<int>(lines_.back().code.size()); }

  std::string text() const {
    std::string text;
    for (size_t i = 0; i < lines_.size();) {
      size_t end = i, widest = 0;
      for (; end < lines_.size() && lines_[end].has_both(); ++end)
        widest = std::max(widest, lines_[end].width());
      for (end = std::max(end, i + 1); i < end; ++i) {
        const Line& line = lines_[i];
        if (!line.is_empty()) text.append(static_cast<size_t>(line.indent), ' ');
        text += line.code;
        if (line.has_both()) text.append(widest - line.width() + 2, ' ');
        text += line.comment + "\n";
      }
    }
    return text;
  }

 private:
  struct Line {
    int indent;
    std::string code, comment;
    bool is_empty() const { return code.empty() && comment.empty(); }
    bool has_both() const { return !code.empty() && !comment.empty(); }
    size_t width() const { return static_cast<size_t>(indent) + code.size(); }
  };
  std::vector<Line> lines_;
};

// What the tree says about a token.
struct Role {
  enum class Kind { plain, starts, opens, closes, dropped };
  Kind kind = Kind::plain;
  const Statement* statement = nullptr;
  const Block* block = nullptr;  // that a token opens or closes
};

class Formatter {
 public:
  explicit Formatter(const SyntaxTree& tree) : tree_(tree), roles_(tree.tokens.size()) {
    assign(tree.file);
  }

  std::string text() {
    frames_ = {{}};
    const int last = static_cast<int>(tree_.tokens.size()) - 1;
    for (int at = 0; at < last; ++at) write(at);
    gap(last, 0, !lines_.none());
    return lines_.text();
  }

  // The words that must stay, and the comments.
  std::string content() const {
    std::string content;
    for (int at = 0; at < std::ssize(tree_.tokens); ++at) {
      const Gap gap(tree_.token(at).gap);
      if (!gap.trailing.empty()) content += gap.trailing + "\n";
      for (const std::string& line : gap.lines) content += line.empty() ? "" : line + "\n";
      if (role(at).kind != Role::Kind::dropped) content += cat(written(at), "\n");
    }
    return content;
  }

 private:
  // A block that is being written, or the file.
  struct Frame {
    bool in_lines = true;
    int indent = 0;            // of its statements
    int depth = 0;             // of brackets in the current statement
    int statement_indent = 0;  // of its first line
    int column = 0;            // of its first line as it was
  };

  const Role& role(int at) const { return roles_[static_cast<size_t>(at)]; }

  void assign(const Block& block) {
    for (const Statement& s : block.statements) {
      for (int at = s.all.begin; at < s.all.end; ++at)
        roles_[static_cast<size_t>(at)] = {Role::Kind::plain, &s, nullptr};
      roles_[static_cast<size_t>(s.all.begin)].kind = Role::Kind::starts;
      // The colon before a block says nothing, and that of an include is written in any case.
      const int colon = s.kind == Statement::Kind::include ? s.all.begin + 1 : s.name.end;
      const bool before_block = !s.blocks.empty() && s.blocks[0].open == colon + 1;
      if (tree_.token(colon).is(":") && (s.kind == Statement::Kind::include ||
                                         (s.kind == Statement::Kind::field && before_block)))
        roles_[static_cast<size_t>(colon)].kind = Role::Kind::dropped;
      // So say separators.
      const int end =
          std::max({s.name.end, s.value.end, s.blocks.empty() ? 0 : s.blocks.back().close + 1});
      if (s.all.end > end &&
          (tree_.token(s.all.end - 1).is(",") || tree_.token(s.all.end - 1).is(";")))
        roles_[static_cast<size_t>(s.all.end - 1)].kind = Role::Kind::dropped;
      for (const Block& inner : s.blocks) {
        roles_[static_cast<size_t>(inner.open)] = {Role::Kind::opens, &s, &inner};
        roles_[static_cast<size_t>(inner.close)] = {Role::Kind::closes, &s, &inner};
        assign(inner);
      }
    }
  }

  std::string_view written(int at) const {
    const Role::Kind kind = role(at).kind;
    return kind == Role::Kind::opens    ? "{"
           : kind == Role::Kind::closes ? "}"
                                        : tree_.token(at).text;
  }
  bool is_include(int at) const {
    return role(at).kind == Role::Kind::starts &&
           role(at).statement->kind == Statement::Kind::include;
  }

  // Writes what is before a token: comments, with this indentation, and empty lines among them if `separates`.
  void gap(int at, int indent, bool separates) {
    const Gap gap(tree_.token(at).gap);
    const bool is_end =
        tree_.token(at).kind == Token::Kind::end || role(at).kind == Role::Kind::closes;
    bool after_comment = separates;
    if (!gap.trailing.empty()) {
      after_comment = after_comment || lines_.none();
      if (lines_.none()) lines_.begin(indent);
      lines_.comment(gap.trailing);
    }
    for (size_t i = 0; i < gap.lines.size(); ++i) {
      const std::string& line = gap.lines[i];
      if (line.empty()) {
        if (after_comment && !(is_end && i + 1 == gap.lines.size())) lines_.begin(0);
        continue;
      }
      lines_.begin(indent);
      lines_.comment(line);
      after_comment = true;
    }
  }

  void write(int at) {
    Frame& frame = frames_.back();
    const Role& r = role(at);
    const Token& token = tree_.token(at);
    const bool first = r.kind == Role::Kind::starts, closes = r.kind == Role::Kind::closes;
    const bool own_line = frame.in_lines && (closes || (first && !stays_on_line(at)));
    if (own_line) {
      const bool is_first = lines_.none() || just_opened_;
      gap(at, frame.indent, !is_first);
    } else if (Gap(token.gap).has_comment()) {
      gap(at, continued(at), false);
    }
    just_opened_ = false;
    if (r.kind == Role::Kind::dropped) return;
    if (own_line) {
      lines_.begin(closes ? frame.indent - kStep : frame.indent);
    } else if (lines_.is_ended() || keeps_new_line(at)) {
      lines_.begin(continued(at));
    } else if (has_space(at)) {
      lines_.add(" ");
    }
    if (first) {
      frame.depth = 0;
      frame.statement_indent = lines_.indent();
      frame.column = original_column(at);
    }
    if (r.kind == Role::Kind::opens) return open(*r.block);
    if (closes) frames_.pop_back();
    if (r.kind == Role::Kind::plain || first) frame.depth += bracket(token);
    lines_.add(written(at));
    if (is_include(at)) lines_.add(":");
  }

  // Whether a statement of a block in lines goes on with the line of the one before it, as a person wrote it.
  bool stays_on_line(int at) const {
    if (lines_.is_ended() || just_opened_ || tree_.is_first_on_line(at)) return false;
    const Statement& s = *role(at).statement;
    return s.blocks.empty() && role(at - 1).kind != Role::Kind::closes &&
           lines_.column() + width(s.all.begin, s.all.end) <= kWidth;
  }

  static int bracket(const Token& token) {
    if (token.is("[") || token.is("(")) return 1;
    return token.is("]") || token.is(")") ? -1 : 0;
  }

  void open(const Block& block) {
    Frame inside;
    inside.in_lines =
        has_newline(block) ||
        lines_.column() + width(block.open, block.close + 1) + braces_behind(block) > kWidth;
    if (block.statements.empty() && !Gap(tree_.token(block.close).gap).has_comment())
      inside.in_lines = false;
    const Frame& around = frames_.back();
    inside.indent = (around.depth > 0 ? lines_.indent() : around.statement_indent) + kStep;
    lines_.add("{");
    just_opened_ = true;
    frames_.push_back(inside);
  }

  bool has_newline(const Block& block) const {
    for (int at = block.open + 1; at <= block.close; ++at) {
      if (tree_.token(at).gap.find('\n') != std::string_view::npos) return true;
    }
    return false;
  }

  // Of tokens on one line.
  int width(int begin, int end) const {
    int width = 0;
    for (int at = begin; at < end; ++at) {
      if (role(at).kind == Role::Kind::dropped) continue;
      width +=
          static_cast<int>(written(at).size()) + (has_space(at) ? 1 : 0) + (is_include(at) ? 1 : 0);
    }
    return width;
  }
  int braces_behind(const Block& block) const {
    int width = 0;
    for (int at = block.close + 1;
         role(at).kind == Role::Kind::closes && !tree_.is_first_on_line(at); ++at)
      width += 2;
    return width;
  }

  // The indentation of a token that begins a line within a statement: as far to the right of the statement as it was, and
  // at least that of the brackets around it.
  int continued(int at) const {
    const Frame& frame = frames_.back();
    const int depth = frame.depth - (bracket(tree_.token(at)) < 0 ? 1 : 0);
    const int least = frame.depth > 0 ? kStep * depth : 2 * kStep;
    return frame.statement_indent + std::max(least, original_column(at) - frame.column);
  }

  // Whether a person's new line before a token stays: in values, but not behind their name.
  bool keeps_new_line(int at) const {
    const Role& r = role(at);
    if (r.kind == Role::Kind::starts || r.kind == Role::Kind::closes) return false;
    if (tree_.token(at).gap.find('\n') == std::string_view::npos) return false;
    const Token& token = tree_.token(at);
    const Statement& s = *r.statement;
    if (r.kind == Role::Kind::opens)
      return tree_.token(at - 1).is("[") || tree_.token(at - 1).is(",");
    return at >= s.value.begin + (is_list_of_blocks(s) ? 1 : 0) && at > s.name.end &&
           at != s.value.begin && at < s.value.end && !token.is(",");
  }
  static bool is_list_of_blocks(const Statement& s) {
    return s.kind == Statement::Kind::field && !s.blocks.empty() && !s.value.empty();
  }

  bool has_space(int at) const {
    const Token &token = tree_.token(at), &before = tree_.token(at - 1);
    const Role& r = role(at);
    const Statement& s = *r.statement;
    if (r.kind == Role::Kind::closes) return !r.block->statements.empty() || r.block->close == at;
    if (r.kind == Role::Kind::starts) return true;
    if (r.kind == Role::Kind::opens) return !before.is("[");
    if (s.kind == Statement::Kind::assignment && at <= s.value.begin) return true;
    if (token.is(":") && at == s.name.end && s.kind == Statement::Kind::field) return false;
    if (token.is(",") || bracket(token) < 0 || bracket(before) > 0) return false;
    if (at == s.value.begin || before.is(",") || role(at - 1).kind == Role::Kind::closes ||
        token.is("=") || before.is("="))
      return true;
    return !token.gap.empty();
  }

  int original_column(int at) const {
    while (at > 0 && !tree_.is_first_on_line(at)) --at;
    return column_after(tree_.token(at).gap).value_or(0);
  }

  const SyntaxTree& tree_;
  std::vector<Role> roles_;
  Lines lines_;
  std::vector<Frame> frames_;
  bool just_opened_ = false;
};

}  // namespace

std::string formatted(const SyntaxTree& tree) {
  require(tree.mistakes.empty(), "a text with mistakes is not formatted");
  std::string text = Formatter(tree).text();
  const SyntaxTree again(text);
  require(again.mistakes.empty() && Formatter(again).content() == Formatter(tree).content(),
          "formatting would change what the file says, which is a mistake of Crema's; please "
          "report it");
  const size_t first_end = tree.text.find('\n');
  if (first_end == 0 || first_end == std::string::npos || tree.text[first_end - 1] != '\r')
    return text;
  std::string with_returns;
  for (const char c : text) with_returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return with_returns;
}

}  // namespace crema
