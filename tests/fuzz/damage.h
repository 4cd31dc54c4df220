// Ways to damage files. Plain bytes rarely get past a reader's first check, so each kind of file
// has one that knows its structure.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "fuzz/dice.h"

namespace crema::tests {

// Bits, bytes, and numbers of 2 to 8 bytes at their positions; pieces that are cut out, doubled, or
// come from `other`.
void damage_bytes(Dice& dice, std::string& bytes, const std::string& other);

// Words, numbers, texts in quotes, and blocks in braces: taken out, doubled, exchanged, or
// replaced; names by some of `words`.
void damage_text(Dice& dice, std::string& text, const std::vector<std::string>& words,
                 const std::string& other);

// Some fields of the message, at any depth: set to impossible values, emptied, repeated. `words`
// are for texts.
void damage_message(Dice& dice, google::protobuf::Message& message,
                    const std::vector<std::string>& words);

// The same for the bytes of a message, whatever its type: fields that are left out, come twice, or
// under another number or kind, and lengths that are wrong.
void damage_wire(Dice& dice, std::string& bytes);

// All names of fields and values that texts of such messages can have.
std::vector<std::string> words_of(const google::protobuf::Descriptor* type);

}  // namespace crema::tests
