#include "tools/lsp/names.h"

#include <algorithm>
#include <cctype>

namespace crema {
namespace {

bool is_blob_field(std::string_view name) { return name == "top" || name == "bottom"; }

// The names of layers and of parameters that layers share.
void each_label(const SyntaxTree& tree,
                const std::function<void(const Token& token, Name::Kind kind)>& visit) {
  each_statement(tree, type_of(tree), [&](const TypedPlace& place) {
    const auto* const field = field_of(tree, place);
    const Statement& s = *place.statement;
    if (!field || s.value.end - s.value.begin != 1) return;
    const bool is_parameter = field->full_name() == "crema.ParamSpec.name";
    if (!is_parameter && field->full_name() != "crema.LayerParameter.name") return;
    const Token& token = tree.token(s.value.begin);
    if (token.kind == Token::Kind::text)
      visit(token, is_parameter ? Name::Kind::parameter : Name::Kind::layer);
  });
}

// The names in the arguments of includes, which are variables of the file that is included.
void each_argument(const SyntaxTree& tree, const Block& block,
                   const std::function<void(const Token& token)>& visit) {
  for (const Statement& s : block.statements) {
    for (const Block& inside : s.blocks) {
      if (s.kind != Statement::Kind::include) {
        each_argument(tree, inside, visit);
        continue;
      }
      for (const Statement& argument : inside.statements) {
        if (argument.kind == Statement::Kind::field) visit(tree.token(argument.name.begin));
      }
    }
  }
}

}  // namespace

size_t end_of(const Token& token) { return token.begin + token.text.size(); }

std::string unquoted(std::string_view text) {
  if (text.size() > 1 && text.back() == text.front())
    return std::string(text.substr(1, text.size() - 2));
  return std::string(text.substr(1));
}

void each_variable(const Token& token, const std::function<void(size_t begin, size_t end)>& visit) {
  const bool is_text = token.kind == Token::Kind::text;
  if (!is_text && token.kind != Token::Kind::variable) return;
  for (size_t at = 0; (at = token.text.find('$', at)) != std::string_view::npos;) {
    ++at;
    if (is_text && at < token.text.size() && token.text[at] == '{') ++at;
    size_t end = at;
    while (end < token.text.size() &&
           (std::isalnum(static_cast<unsigned char>(token.text[end])) || token.text[end] == '_'))
      ++end;
    if (end > at && !std::isdigit(static_cast<unsigned char>(token.text[at])))
      visit(token.begin + at, token.begin + end);
    at = end;
  }
}

void each_blob(
    const SyntaxTree& tree,
    const std::function<void(const Token& token, bool writes, const TypedPlace& place)>& visit) {
  each_statement(tree, type_of(tree), [&](const TypedPlace& place) {
    const Statement& s = *place.statement;
    if (s.kind != Statement::Kind::field || !is_blob_field(word_of(tree, s))) return;
    for (int at = s.value.begin; at < s.value.end; ++at) {
      if (tree.token(at).kind == Token::Kind::text)
        visit(tree.token(at), word_of(tree, s) == "top", place);
    }
  });
}

const Token* token_at(const SyntaxTree& tree, size_t offset) {
  for (const Token& token : tree.tokens) {
    if (token.begin <= offset && offset <= end_of(token) && token.kind != Token::Kind::end &&
        token.kind != Token::Kind::symbol)
      return &token;
  }
  return nullptr;
}

Name name_at(const SyntaxTree& tree, size_t offset) {
  const Token* const token = token_at(tree, offset);
  if (!token) return {};
  Name name;
  each_variable(*token, [&](size_t begin, size_t end) {
    if (begin <= offset + 1 && offset <= end)
      name = {Name::Kind::variable, tree.text.substr(begin, end - begin)};
  });
  each_argument(tree, tree.file, [&](const Token& argument) {
    if (&argument == token) name = {Name::Kind::variable, std::string(argument.text)};
  });
  if (name.kind != Name::Kind::none || token->kind != Token::Kind::text) return name;
  each_blob(tree, [&](const Token& blob, bool, const TypedPlace&) {
    if (&blob == token) name = {Name::Kind::blob, unquoted(blob.text)};
  });
  each_label(tree, [&](const Token& label, Name::Kind kind) {
    if (&label == token) name = {kind, unquoted(label.text)};
  });
  if (name.kind != Name::Kind::none) return name;
  const auto index = static_cast<size_t>(token - tree.tokens.data());
  for (size_t back = 1; back <= 2 && back <= index; ++back) {
    if (starts_include(tree.tokens, index - back)) return {Name::Kind::file, unquoted(token->text)};
  }
  return {};
}

std::vector<NamePlace> places_of(const SyntaxTree& tree, const Name& name) {
  std::vector<NamePlace> places;
  if (name.kind == Name::Kind::blob) {
    each_blob(tree, [&](const Token& token, bool writes, const TypedPlace&) {
      if (unquoted(token.text) == name.text)
        places.push_back({token.begin + 1, token.begin + 1 + name.text.size(), writes});
    });
  } else if (name.kind == Name::Kind::layer || name.kind == Name::Kind::parameter) {
    each_label(tree, [&](const Token& token, Name::Kind kind) {
      if (kind == name.kind && unquoted(token.text) == name.text)
        places.push_back({token.begin + 1, token.begin + 1 + name.text.size(), true});
    });
  } else if (name.kind == Name::Kind::variable) {
    each_argument(tree, tree.file, [&](const Token& argument) {
      if (argument.text == name.text) places.push_back({argument.begin, end_of(argument), true});
    });
    for (size_t i = 0; i < tree.tokens.size(); ++i) {
      const bool is_set =
          i + 1 < tree.tokens.size() && (tree.tokens[i + 1].is("=") || tree.tokens[i + 1].is("?="));
      const bool in_repeat = i > 0 && tree.tokens[i - 1].is_word("repeat");
      each_variable(tree.tokens[i], [&](size_t begin, size_t end) {
        if (tree.text.compare(begin, end - begin, name.text) == 0)
          places.push_back({begin, end, is_set || in_repeat});
      });
    }
  }
  std::sort(places.begin(), places.end(),
            [](const NamePlace& a, const NamePlace& b) { return a.begin < b.begin; });
  return places;
}

}  // namespace crema
