#include "net/expand/expand.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "net/expand/expression.h"
#include "net/expand/included_files.h"
#include "net/expand/output.h"

namespace crema {

namespace {

constexpr size_t kMaxExpanded = size_t{8} << 20;   // ResNet-152 has 170 KiB
constexpr int64_t kInclude = 32, kRepetition = 8;  // what they cost, in simple statements
constexpr int kMaxBlocks = 200;                    // of blocks in each other

// How a part of the text got where it is: a file, and the values of the repeats in it.
struct Level {
  std::string file;
  std::string included;  // "included at net.prototxt:3:1"; empty for the first file
  std::vector<std::string> repeats;
};

class Expander {
 public:
  Expander(const std::string& path, const Variables& given, const ExpandHooks& hooks)
      : output_(path), scopes_(given), hooks_(hooks), files_(hooks) {}

  SourceText run(Cursor cursor) {
    levels_.push_back({cursor.file->path, "", {}});
    scopes_.enter_file({});
    statements(cursor, "");
    output_.gap(cursor.token().gap, true, true);
    return output_.finish();
  }

  const std::vector<std::string>& used() const { return scopes_.used(); }

 private:
  // All statements up to `closing`, which stays; "" is the end of the file.
  void statements(Cursor& cursor, std::string_view closing) {
    if (++depth_ > kMaxBlocks) fail(cursor.here(), ": too many blocks in each other");
    while (cursor.token().kind != Token::Kind::end &&
           !(!closing.empty() && cursor.token().is(closing))) {
      scopes_.spend(1, cursor.here());
      statement(cursor, closing == ">");
      if (output_.size() > kMaxExpanded)
        fail(cursor.here(), ": the expanded text is larger than ", size_text(kMaxExpanded));
    }
    --depth_;
  }

  void statement(Cursor& cursor, bool angle) {
    const Token& token = cursor.token();
    if (token.kind == Token::Kind::variable) return assignment(cursor);
    if (starts_include(cursor.tokens, cursor.at)) return include(cursor);
    if (starts_repeat(cursor.tokens, cursor.at)) return repeat(cursor);
    if (starts_if(cursor.tokens, cursor.at)) return condition(cursor);
    if (starts_error(cursor.tokens, cursor.at)) return error(cursor);
    if (token.is_word("else") && cursor.tokens[cursor.at + 1].is("{"))
      fail(cursor.here(), ": an else without an if before it");
    field(cursor, angle);
  }

  // Comments are copied once, and only those of the file that a person names.
  bool copies_comments() const { return scopes_.files() == 1 && copies_ == 0; }

  void copy(Cursor& cursor) {
    output_.gap(cursor.token().gap, copies_comments(), copies_comments());
    output_.write(cursor, cursor.token());
    ++cursor.at;
  }

  // --- fields -----------------------------------------------------------------------------------

  void field(Cursor& cursor, bool angle) {
    const bool named = cursor.token().kind == Token::Kind::word || cursor.token().is("[");
    if (cursor.token().is("[")) {  // the name of an extension
      while (cursor.token().kind != Token::Kind::end && !cursor.token().is("]")) copy(cursor);
    }
    if (cursor.token().kind == Token::Kind::end) return;
    copy(cursor);
    if (!named) return;
    const bool colon = cursor.token().is(":");
    if (colon) copy(cursor);
    if (opens_block(cursor.token())) return block(cursor);
    if (!colon) return;
    if (cursor.token().is("[") && opens_block(cursor.tokens[cursor.at + 1])) {
      return list_of_blocks(cursor);
    }
    value(cursor, angle);
  }

  static bool opens_block(const Token& token) { return token.is("{") || token.is("<"); }

  void block(Cursor& cursor) {
    const std::string_view closing = cursor.token().is("{") ? "}" : ">";
    copy(cursor);
    statements(cursor, closing);
    if (cursor.token().is(closing)) copy(cursor);
  }

  void list_of_blocks(Cursor& cursor) {
    while (cursor.token().kind != Token::Kind::end && !cursor.token().is("]")) {
      opens_block(cursor.token()) ? block(cursor) : copy(cursor);
    }
    if (cursor.token().kind != Token::Kind::end) copy(cursor);
  }

  void value(Cursor& cursor, bool angle) {
    const size_t begin = cursor.at;
    // Anything that is not a value is left to protobuf's parser.
    const Token& first = cursor.token();
    if (first.kind == Token::Kind::end || first.is("}") || first.is(">")) return;
    const Literal value = computed(cursor, angle);
    const size_t end = cursor.at;
    const bool plain =
        std::none_of(cursor.tokens.begin() + static_cast<int64_t>(begin),
                     cursor.tokens.begin() + static_cast<int64_t>(end), [](const Token& token) {
                       return token.kind == Token::Kind::variable ||
                              (token.kind == Token::Kind::text &&
                               token.text.find('$') != std::string_view::npos) ||
                              (token.kind == Token::Kind::symbol && !token.is("[") &&
                               !token.is("]") && !token.is(",") && !token.is("-"));
                     });
    if (plain) {
      for (cursor.at = begin; cursor.at < end;) copy(cursor);
      return;
    }
    const Token& token = cursor.tokens[begin];
    output_.gap(token.gap, copies_comments(), copies_comments());
    output_.write(written(value), cursor, token);
  }

  Literal computed(Cursor& cursor, bool angle = false) {
    const Token first = cursor.token();
    Literal value = evaluate(cursor, scopes_, angle);
    if (hooks_.computed) {
      const Token& last = cursor.tokens[cursor.at - 1];
      hooks_.computed(*cursor.file, cursor.base + first.begin,
                      cursor.base + last.begin + last.text.size(), value);
    }
    return value;
  }

  // --- statements of the expansion ----------------------------------------------------------------

  void begin_statement(const Cursor& cursor, bool comments) {
    output_.gap(cursor.token().gap, copies_comments(), comments && copies_comments());
  }

  void assignment(Cursor& cursor) {
    const bool opens_file = cursor.at == 0 && output_.size() == 0;
    begin_statement(cursor, opens_file);
    const std::string name(cursor.token().text.substr(1));
    ++cursor.at;
    const bool is_default = cursor.consume("?=");
    if (!is_default) cursor.expect("=", cat("= or ?= and a value after $", name));
    Literal value = computed(cursor);
    cursor.consume(";");
    output_.omit();
    if (!is_default || !scopes_.find(name)) scopes_.set(name, std::move(value));
  }

  void include(Cursor& cursor) {
    begin_statement(cursor, true);
    const Token word = cursor.token();
    ++cursor.at;
    cursor.consume(":");
    const Place at = cursor.here();
    const Literal name = computed(cursor);
    const auto* text = name.as<Text>();
    require(text, at, ": include expects the name of a file in quotes, found ", described(name));
    Variables arguments;
    if (cursor.token().is("{")) arguments = arguments_of(cursor);

    Cursor inside;
    inside.file = files_.find(text->escaped, *cursor.file, at);
    for (const Level& level : levels_) {
      std::error_code unknown;  // of a text from a pipe
      if (std::filesystem::equivalent(level.file, inside.file->path, unknown))
        fail(at, ": files that include each other in a circle: ", level.file);
    }
    inside.tokens = tokens_of(inside.file->text);
    scopes_.spend(kInclude + std::ssize(inside.tokens), at);
    levels_.push_back(
        {inside.file->path, cat("included at ", cursor.file->where(cursor.base + word.begin)), {}});
    inside.context = context();
    const int shift = output_.shift();
    output_.set_shift(output_.column());
    scopes_.enter_file(std::move(arguments));
    output_.omit();  // comments of the included file's first line
    statements(inside, "");
    scopes_.leave();
    levels_.pop_back();
    output_.set_shift(shift);
    output_.omit();
  }

  // { name: value ... }
  Variables arguments_of(Cursor& cursor) {
    Variables arguments;
    cursor.expect("{", "{");
    while (!cursor.consume("}")) {
      if (cursor.token().kind != Token::Kind::word)
        fail(cursor.here(), ": expected the name of a variable, or \"}\"", cursor.found());
      const std::string name(cursor.token().text);
      const Place at = cursor.here();
      ++cursor.at;
      cursor.expect(":", cat("\":\" and a value after ", name));
      const bool is_new = arguments.emplace(name, computed(cursor)).second;
      require(is_new, at, ": ", name, " is given twice");
      if (!cursor.consume(",")) cursor.consume(";");
    }
    return arguments;
  }

  void repeat(Cursor& cursor) {
    begin_statement(cursor, true);
    ++cursor.at;
    std::vector<std::string> names;
    if (cursor.token().kind == Token::Kind::variable) {
      do {
        if (cursor.token().kind != Token::Kind::variable)
          fail(cursor.here(), ": expected a variable", cursor.found());
        names.emplace_back(cursor.token().text.substr(1));
        ++cursor.at;
      } while (cursor.consume(","));
      cursor.expect("=", "\"=\" and the values of the repeat");
    }
    const Place at = cursor.here();
    const Literal::List values = values_of(cursor, names.empty());
    const Token opening = cursor.token();
    cursor.expect("{", "\"{\" and what to repeat");
    const size_t body = cursor.at;
    skip_block(cursor, opening);
    const size_t end = cursor.at;
    const int shift = enter(cursor.tokens[body]);
    for (size_t i = 0; i < values.size(); ++i) {
      scopes_.spend(kRepetition, at);
      scopes_.enter_repeat();
      if (!names.empty()) take_apart(names, values[i], at);
      const auto before = cursor.context;
      cursor.context = context();
      copies_ += i > 0 ? 1 : 0;
      cursor.at = body;
      output_.omit();
      statements(cursor, "}");
      end_of_block(cursor);
      copies_ -= i > 0 ? 1 : 0;
      cursor.context = before;
      if (!names.empty()) levels_.back().repeats.pop_back();
      scopes_.leave();
    }
    output_.set_shift(shift);
    output_.omit();
    cursor.at = end;
  }

  // FIRST..LAST, a list, or without a variable a count.
  Literal::List values_of(Cursor& cursor, bool counted) {
    const Place at = cursor.here();
    const Literal first = evaluate(cursor, scopes_);
    if (counted || cursor.token().is("..")) {
      int64_t from = 1;
      Literal last = first;
      if (!counted) {
        from = whole_number(first, at);
        ++cursor.at;
        last = evaluate(cursor, scopes_);
      }
      const int64_t to = whole_number(last, at);
      const uint64_t more = to > from ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from) : 0;
      scopes_.spend(static_cast<int64_t>(std::min<uint64_t>(more, 1 << 30)), at);
      Literal::List values;
      for (int64_t i = from; i <= to; ++i) values.emplace_back(i);
      return values;
    }
    const auto* list = first.as<Literal::List>();
    require(list, at, ": a repeat takes FIRST..LAST or a list, found ", described(first));
    return *list;
  }

  void take_apart(const std::vector<std::string>& names, const Literal& value, const Place& at) {
    std::vector<std::string> shown;
    const auto* list = value.as<Literal::List>();
    const bool fits = names.size() == 1 || (list && list->size() == names.size());
    require(fits, at, ": expected lists of ", names.size(), " values, found ", described(value));
    for (size_t i = 0; i < names.size(); ++i) {
      const Literal& part = names.size() == 1 ? value : (*list)[i];
      scopes_.set_here(names[i], part);
      shown.push_back(cat("$", names[i], " = ", written(part)));
    }
    levels_.back().repeats.push_back(join(shown, ", "));
  }

  void condition(Cursor& cursor) {
    begin_statement(cursor, true);
    bool done = false;
    while (true) {
      bool taken = !done;
      if (cursor.token().is_word("if")) {
        ++cursor.at;
        const Place at = cursor.here();
        if (!done) taken = is_true(evaluate(cursor, scopes_), at);
        // A branch after a true one is read, but not computed.
        while (done && !cursor.token().is("{") && cursor.token().kind != Token::Kind::end)
          ++cursor.at;
      }
      branch(cursor, taken);
      done |= taken;
      if (!cursor.token().is_word("else")) break;
      ++cursor.at;
    }
    output_.omit();
  }

  void branch(Cursor& cursor, bool taken) {
    const Token opening = cursor.token();
    cursor.expect("{", "\"{\" and what the condition decides about");
    const size_t body = cursor.at;
    if (!taken) return skip_block(cursor, opening);
    const int shift = enter(cursor.tokens[body]);
    output_.omit();
    statements(cursor, "}");
    end_of_block(cursor);
    if (!cursor.consume("}")) unclosed(cursor, opening);
    output_.set_shift(shift);
  }

  // error: "what is wrong", from a file that cannot do what was requested.
  [[noreturn]] void error(Cursor& cursor) {
    const Token word = cursor.token();
    cursor.at += 2;
    fail(cursor.where(word), ": ", inside_text(evaluate(cursor, scopes_)));
  }

  // Comments at the end of a block; its brace is not written.
  void end_of_block(Cursor& cursor) {
    output_.gap(cursor.token().gap, copies_comments(), copies_comments());
    output_.omit();
  }

  [[noreturn]] static void unclosed(const Cursor& cursor, const Token& opening) {
    fail(cursor.where(opening), ": this block is not closed: the file ends before its \"}\"");
  }

  // Moves past the brace that closes the block.
  static void skip_block(Cursor& cursor, const Token& opening) {
    for (int open = 1; open > 0; ++cursor.at) {
      if (cursor.token().kind == Token::Kind::end) unclosed(cursor, opening);
      open += cursor.token().is("{") ? 1 : cursor.token().is("}") ? -1 : 0;
    }
  }

  // Moves a block that starts with this token to where its statement is; returns the previous shift.
  int enter(const Token& first) {
    const int before = output_.shift();
    if (const auto column = column_after(first.gap)) output_.set_shift(output_.column() - *column);
    return before;
  }

  std::shared_ptr<const std::string> context() const {
    std::vector<std::string> parts;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      parts.insert(parts.end(), level->repeats.begin(), level->repeats.end());
      if (!level->included.empty()) parts.push_back(level->included);
    }
    return parts.empty() ? nullptr : std::make_shared<const std::string>(join(parts, ", "));
  }

  Output output_;
  Scopes scopes_;
  const ExpandHooks& hooks_;
  IncludedFiles files_;
  std::vector<Level> levels_;
  int depth_ = 0, copies_ = 0;
};

}  // namespace

SourceText expand(const std::string& path, const std::string& text, const Variables& given,
                  std::vector<std::string>* used, const ExpandHooks& hooks) {
  Cursor cursor;
  cursor.file = std::make_shared<const WrittenFile>(WrittenFile{path, text});
  cursor.tokens = tokens_of(cursor.file->text);
  if (!has_expansions(cursor.tokens)) return SourceText(path, text);
  Expander expander(path, given, hooks);
  SourceText expanded = expander.run(cursor);
  if (used) used->insert(used->end(), expander.used().begin(), expander.used().end());
  return expanded;
}

}  // namespace crema
