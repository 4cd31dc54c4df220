#include "tools/lsp/typed_tree.h"

#include <algorithm>

#include "net/prototxt/other_field_names.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"

namespace crema {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

bool passes_type_on(const Statement& s) {
  return s.kind == Statement::Kind::repeat || s.kind == Statement::Kind::condition;
}

bool is_layer(const Descriptor* type) {
  return type == LayerParameter::descriptor() || (type && type->name() == "V1LayerParameter");
}

class Walk {
 public:
  Walk(const SyntaxTree& tree, const std::function<void(const TypedPlace&)>& visit)
      : tree_(tree), visit_(visit) {}

  void block(const Block& block, TypedPlace place) {
    place.block = &block;
    for (const Statement& s : block.statements) {
      place.statement = &s;
      visit_(place);
      for (const Block& inside : s.blocks) this->block(inside, place_inside(tree_, place, inside));
    }
  }

  static TypedPlace place_inside(const SyntaxTree& tree, const TypedPlace& place,
                                 const Block& block) {
    TypedPlace inside = place;
    inside.block = &block;
    inside.statement = nullptr;
    const Statement& s = *place.statement;
    if (passes_type_on(s)) return inside;
    const FieldDescriptor* const field = field_of(tree, place);
    if (!field || !field->message_type()) {
      inside.blocks.clear();
      return inside;
    }
    OpenBlock open;
    open.type = field->message_type();
    open.field = field->name();
    open.line = static_cast<int>(tree.line_of(tree.token(s.all.begin).begin));
    if (is_layer(open.type)) {
      open.layer = text_of_field(tree, block, "name");
      inside.layer = &s;
    }
    inside.blocks.push_back(std::move(open));
    return inside;
  }

 private:
  const SyntaxTree& tree_;
  const std::function<void(const TypedPlace&)>& visit_;
};

TypedPlace place_of_file(const SyntaxTree& tree, const Descriptor* root) {
  TypedPlace place;
  place.block = &tree.file;
  if (root) {
    OpenBlock open;
    open.type = root;
    place.blocks.push_back(std::move(open));
  }
  return place;
}

// The names of a block's fields, those in repeats and conditions included.
void add_names(const SyntaxTree& tree, const Block& block, std::vector<std::string>* names) {
  for (const Statement& s : block.statements) {
    if (s.kind == Statement::Kind::field) names->push_back(word_of(tree, s));
    if (!passes_type_on(s)) continue;
    for (const Block& inside : s.blocks) add_names(tree, inside, names);
  }
}

}  // namespace

std::string word_of(const SyntaxTree& tree, const Statement& s) {
  return s.name.empty() ? "" : std::string(tree.token(s.name.begin).text);
}

std::vector<std::string> names_in(const SyntaxTree& tree) {
  std::vector<std::string> names;
  add_names(tree, tree.file, &names);
  return names;
}

const Descriptor* type_of(const SyntaxTree& tree) { return type_with(names_in(tree)); }

const Descriptor* type_with(const std::vector<std::string>& names) {
  const Descriptor* best = nullptr;
  std::ptrdiff_t most = 0;
  for (const Descriptor* type :
       {NetParameter::descriptor(), SolverParameter::descriptor(), LayerParameter::descriptor()}) {
    const auto known = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return type->FindFieldByName(name) != nullptr;
    });
    // A layer's part has nothing else, and a net or solver mostly its own.
    const bool fits = type == LayerParameter::descriptor() ? known == std::ssize(names)
                                                           : 2 * known >= std::ssize(names);
    if (fits && known > most) best = type, most = known;
  }
  if (best || most > 0) return best;
  // A file that has only other frameworks' words so far: epochs, lr, Layer.
  for (const Descriptor* type : {NetParameter::descriptor(), SolverParameter::descriptor()}) {
    const auto meant = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return !other_field_name(*type, name).empty();
    });
    if (2 * meant >= std::ssize(names) && meant > most) best = type, most = meant;
  }
  return best;
}

void each_statement(const SyntaxTree& tree, const Descriptor* root,
                    const std::function<void(const TypedPlace&)>& visit) {
  Walk(tree, visit).block(tree.file, place_of_file(tree, root));
}

TypedPlace place_at(const SyntaxTree& tree, const Descriptor* root, size_t offset) {
  TypedPlace place = place_of_file(tree, root);
  while (true) {
    const Block* inside = nullptr;
    place.statement = nullptr;
    for (const Statement& s : place.block->statements) {
      if (tree.token(s.all.begin).begin > offset) break;
      inside = nullptr;  // a block that is not closed ends where the next statement begins
      const Token& last = tree.token(s.all.end - 1);
      const size_t end = last.begin + last.text.size();
      const bool same_line =
          offset >= end && tree.text.substr(end, offset - end).find('\n') == std::string::npos;
      place.statement = offset <= end || same_line ? &s : nullptr;
      for (const Block& block : s.blocks) {
        const bool is_open = block.close < 0 ? offset > tree.token(block.open).begin
                                             : offset > tree.token(block.open).begin &&
                                                   offset <= tree.token(block.close).begin;
        if (is_open) {
          inside = &block;
          place.statement = &s;
        }
      }
    }
    if (!inside) return place;
    place = Walk::place_inside(tree, place, *inside);
  }
}

const FieldDescriptor* field_of(const SyntaxTree& tree, const TypedPlace& place) {
  if (!place.type() || !place.statement || place.statement->kind != Statement::Kind::field)
    return nullptr;
  return place.type()->FindFieldByName(word_of(tree, *place.statement));
}

bool is_old_layer(const SyntaxTree& tree, const TypedPlace& place) {
  return place.type() == NetParameter::descriptor() && word_of(tree, *place.statement) == "layers";
}

std::string text_of_field(const SyntaxTree& tree, const Block& block, std::string_view name) {
  for (const Statement& s : block.statements) {
    if (s.kind != Statement::Kind::field || s.value.empty() ||
        tree.token(s.name.begin).text != name)
      continue;
    const Token& token = tree.token(s.value.begin);
    if (token.kind != Token::Kind::text || token.text.size() < 2) return "";
    return std::string(token.text.substr(1, token.text.size() - 2));
  }
  return "";
}

}  // namespace crema
