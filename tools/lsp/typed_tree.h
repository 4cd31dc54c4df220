// The statements of a file with what the schema says of them: the message that each block is.
#pragma once

#include <google/protobuf/descriptor.h>

#include <functional>
#include <string>
#include <vector>

#include "net/prototxt/prototxt_hints.h"
#include "net/syntax/syntax.h"

namespace crema {

// The message that a file is: of a net, of a solver, or of a layer, for files that others include; null if its fields
// belong to none of them.
const google::protobuf::Descriptor* type_of(const SyntaxTree& tree);
// The names of the fields outside blocks, and the message that has them.
std::vector<std::string> names_in(const SyntaxTree& tree);
const google::protobuf::Descriptor* type_with(const std::vector<std::string>& names);

// A place in a file.
struct TypedPlace {
  const Block* block = nullptr;          // the innermost around it
  const Statement* statement = nullptr;  // of that block; null: between statements
  // Of that block, and of what it is in; empty where the schema knows nothing, as in the arguments of an include.
  std::vector<OpenBlock> blocks;
  const google::protobuf::Descriptor* type() const {
    return blocks.empty() ? nullptr : blocks.back().type;
  }
  const Statement* layer = nullptr;  // the block of a layer around it, if any
};

// Calls visit(place) for each statement, from the first to the last.
void each_statement(const SyntaxTree& tree, const google::protobuf::Descriptor* root,
                    const std::function<void(const TypedPlace&)>& visit);

// The place of an offset: the last statement that begins before it, if it is in it or on its line.
TypedPlace place_at(const SyntaxTree& tree, const google::protobuf::Descriptor* root,
                    size_t offset);

// The field that a statement sets; null if it is none or the schema does not have it.
const google::protobuf::FieldDescriptor* field_of(const SyntaxTree& tree, const TypedPlace& place);

// Whether a statement is `layers { }`, as layers were written until 2014.
bool is_old_layer(const SyntaxTree& tree, const TypedPlace& place);

// The content of the quoted text that is the value of a block's field, such as a layer's name; "" without one. Variables
// stay as they are.
std::string text_of_field(const SyntaxTree& tree, const Block& block, std::string_view name);

std::string word_of(const SyntaxTree& tree, const Statement& statement);  // its name

}  // namespace crema
