#include <array>

#include "tools/lsp/features.h"
#include "tools/lsp/names.h"

namespace crema {
namespace {

// Indices into the legend.
enum class TokenType {
  comment,
  keyword,
  property,
  string,
  number,
  enum_member,
  variable,
  type,
  parameter,
  plain
};
constexpr std::array kTypes = {"comment",    "keyword",  "property", "string",   "number",
                               "enumMember", "variable", "type",     "parameter"};

class TokenColours {
 public:
  explicit TokenColours(const Document& document)
      : document_(document),
        tree_(document.tree()),
        types_(tree_.tokens.size(), TokenType::plain) {}

  Json data() {
    each_statement(tree_, type_of(tree_), [&](const TypedPlace& place) { statement(place); });
    for (size_t i = 0; i < tree_.tokens.size(); ++i) {
      const Token& token = tree_.tokens[i];
      comments(token);
      if (token.kind == Token::Kind::variable) types_[i] = TokenType::variable;
      if (token.kind == Token::Kind::number) types_[i] = TokenType::number;
      if (token.kind == Token::Kind::text && types_[i] == TokenType::plain)
        types_[i] = TokenType::string;
      if (types_[i] != TokenType::plain) token_parts(token, types_[i]);
    }
    return data_;
  }

 private:
  void statement(const TypedPlace& place) {
    const Statement& s = *place.statement;
    if (s.kind == Statement::Kind::junk) return;
    if (s.kind != Statement::Kind::field && s.kind != Statement::Kind::assignment) {
      set(s.all.begin, TokenType::keyword);
      // The "else" and "if" before the branches.
      for (const Block& block : s.blocks) {
        for (int at = block.open - 1; at > s.all.begin && !tree_.token(at).is("}"); --at) {
          if (tree_.token(at).is_word("else") || tree_.token(at).is_word("if"))
            set(at, TokenType::keyword);
        }
      }
      return;
    }
    const auto* const field = field_of(tree_, place);
    if (field || (place.blocks.empty() && s.kind == Statement::Kind::field))
      set(s.name.begin, TokenType::property);
    if (!field) return;
    const bool is_type = field->full_name() == "crema.LayerParameter.type";
    const bool is_blob = field->name() == "bottom" || field->name() == "top";
    for (int at = s.value.begin; at < s.value.end && s.blocks.empty(); ++at) {
      const Token& token = tree_.token(at);
      if (token.kind == Token::Kind::word) set(at, TokenType::enum_member);
      if (token.kind == Token::Kind::text && (is_type || is_blob))
        set(at, is_type ? TokenType::type : TokenType::parameter);
    }
  }

  void set(int at, TokenType type) { types_[static_cast<size_t>(at)] = type; }

  // Variables in a text have their own colour.
  void token_parts(const Token& token, TokenType type) {
    size_t at = token.begin;
    if (token.kind == Token::Kind::text) {
      each_variable(token, [&](size_t begin, size_t end) {
        add(at, begin, type);
        add(begin, end, TokenType::variable);
        at = end;
      });
    }
    add(at, end_of(token), type);
  }

  void comments(const Token& token) {
    const size_t begin = token.begin - token.gap.size();
    for (size_t at = 0; (at = token.gap.find('#', at)) != std::string_view::npos;) {
      const size_t end = std::min(token.gap.find('\n', at), token.gap.size());
      add(begin + at, begin + end, TokenType::comment);
      at = end;
    }
  }

  // Each token is told by the distance from the one before; none may have several lines.
  void add(size_t begin, size_t end, TokenType type) {
    while (begin < end) {
      const size_t newline = tree_.text.find('\n', begin);
      const size_t line_end = std::min(newline, end);
      if (line_end > begin) add_in_line(begin, line_end, type);
      begin = newline < end ? newline + 1 : end;
    }
  }

  void add_in_line(size_t begin, size_t end, TokenType type) {
    const Json from = document_.position(begin), to = document_.position(end);
    const size_t line = from["line"], column = from["character"];
    const size_t to_column = to["character"];
    data_.push_back(line - line_);
    data_.push_back(line == line_ ? column - column_ : column);
    data_.push_back(to_column - column);
    data_.push_back(static_cast<int>(type));
    data_.push_back(0);
    line_ = line;
    column_ = column;
  }

  const Document& document_;
  const SyntaxTree& tree_;
  std::vector<TokenType> types_;
  size_t line_ = 0, column_ = 0;
  Json data_ = Json::array();
};

}  // namespace

Json semantic_legend() { return {{"tokenTypes", kTypes}, {"tokenModifiers", Json::array()}}; }

Json semantic_tokens_of(const Document& document) {
  return {{"data", TokenColours(document).data()}};
}

}  // namespace crema
