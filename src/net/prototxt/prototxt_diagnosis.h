// Finds the mistake in a text that protobuf rejected, and explains it in plain words.
#pragma once

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>

#include "net/expand/source_text.h"

namespace crema {

// Line and column as protobuf counts them (see SourceText::where).
struct Problem {
  int line = 0;
  int column = 0;
  std::string text;
};

// The first mistake of `text` as a message of type `root`; none when no mistake is found.
std::optional<Problem> diagnose(const SourceText& text, const google::protobuf::Descriptor* root);

}  // namespace crema
