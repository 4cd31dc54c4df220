#include "tools/project/net_text.h"

#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "net/prototxt/prototxt.h"
#include "net/syntax/format.h"
#include "net/syntax/syntax.h"

namespace crema {

namespace {

std::string name_of(const SyntaxTree& tree, const Statement& statement) {
  if (statement.kind != Statement::Kind::field) return "";
  return std::string(tree.token(statement.name.begin).text);
}

size_t begin_of(const SyntaxTree& tree, const Statement::Tokens& tokens) {
  return tree.token(tokens.begin).begin;
}

size_t end_of(const SyntaxTree& tree, const Statement::Tokens& tokens) {
  const Token& last = tree.token(tokens.end - 1);
  return last.begin + last.text.size();
}

const Statement& statement_of_layer(const SyntaxTree& tree, int layer) {
  for (const Statement& statement : tree.file.statements) {
    if (name_of(tree, statement) == "layer" && !statement.blocks.empty() && layer-- == 0)
      return statement;
  }
  fail("a net's text has no such layer");
}

const Statement* field_in(const SyntaxTree& tree, const Block& block, const std::string& name) {
  for (const Statement& statement : block.statements) {
    if (name_of(tree, statement) == name) return &statement;
  }
  return nullptr;
}

}  // namespace

std::string quoted(const std::string& text) {
  return google::protobuf::TextFormat::FieldValuePrinter().PrintString(text);
}

NetText::NetText(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  parse();
}

void NetText::parse() {
  const NetFile file = parse_net_text(text_, path_);
  const SyntaxTree tree(text_);
  int layers = 0;
  for (const Statement& statement : tree.file.statements)
    layers += name_of(tree, statement) == "layer" && !statement.blocks.empty();
  require(layers == file.net.layer_size(), path_,
          ": is a net in an old form; `crema upgrade_net_proto_text` converts it");
  net_ = file.net;
}

void NetText::replace(size_t begin, size_t end, const std::string& text) {
  text_.replace(begin, end - begin, text);
  text_ = formatted(SyntaxTree(text_));
  parse();
}

void NetText::set(int layer, const std::string& field, const std::string& value) {
  const SyntaxTree tree(text_);
  const Statement* statement = &statement_of_layer(tree, layer);
  std::vector<std::string> names = split(field, '.');
  std::string before, after;
  for (size_t i = 0; i < names.size(); ++i) {
    const Block& block = statement->blocks.at(0);
    const Statement* const inner = field_in(tree, block, names[i]);
    if (!inner) {
      for (size_t k = i; k + 1 < names.size(); ++k) before += names[k] + " { ", after += " }";
      const size_t at = tree.token(block.close).begin;
      return replace(at, at, cat("\n", before, names.back(), ": ", value, after, "\n"));
    }
    statement = inner;
  }
  replace(begin_of(tree, statement->value), end_of(tree, statement->value), value);
}

void NetText::remove(int layer) {
  const SyntaxTree tree(text_);
  const Statement& statement = statement_of_layer(tree, layer);
  replace(begin_of(tree, statement.all), end_of(tree, statement.all), "");
}

void NetText::set_heading(const std::string& comment) {
  const SyntaxTree tree(text_);
  require(!tree.file.statements.empty(), path_, ": has no layer");
  replace(0, begin_of(tree, tree.file.statements[0].all), comment);
}

}  // namespace crema
