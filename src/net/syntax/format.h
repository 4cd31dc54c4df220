// Writes a prototxt file in one form: blocks are indented by two columns, each statement has a line, and fields are
// "name: value" and "name { ... }". What a person decided stays: comments, single empty lines, lists in lines, several
// statements in a line, and short blocks on one line, if this has room.
#pragma once

#include <string>

#include "net/syntax/syntax.h"

namespace crema {

// The text of a tree without mistakes; its lines end as the first of the tree does. It has the same words and
// comments, and formatting it again changes nothing. Error otherwise.
std::string formatted(const SyntaxTree& tree);

}  // namespace crema
