// `crema layers` lists the layer types; `crema layers TYPE` prints a type's documentation and the
// fields it reads.
#include <unistd.h>

#include <iostream>

#include "base/other_names.h"
#include "layers/layer.h"
#include "layers/layer_docs.h"
#include "layers/layer_types.h"
#include "tools/console/terminal.h"
#include "tools/docs/layer_examples.h"
#include "tools/docs/layer_text.h"
#include "tools/docs/schema.h"
#include "tools/verb.h"

namespace crema {

namespace {

// The first sentence, on one line.
std::string summary_of(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      // A blank line or a formula ends the opening sentence too.
      if (line.empty() || line.back() == ' ') break;
      line += ' ';
    } else {
      line += c;
    }
    if (ends_with(line, ". ")) break;
  }
  return std::string(trim(line));
}

void print_wrapped(const std::string& text, const std::string& indent) {
  constexpr size_t kWidest = 100;
  std::cout << wrapped(text, std::min(columns_of(STDOUT_FILENO), kWidest), indent, indent);
}

void list_types() {
  size_t width = 0;
  for (const std::string& type : layer_types()) width = std::max(width, type.size());
  for (const std::string& type : layer_types()) {
    std::string summary = summary_of(documentation_of(type));
    // "Pooling: a window slides ..." repeats the type.
    const size_t colon = summary.find(": ");
    if (starts_with(summary, type) && colon != std::string::npos)
      summary = summary.substr(colon + 2);
    std::cout << type << std::string(width + 2 - type.size(), ' ') << summary << "\n";
  }
}

void document(const std::string& type) {
  if (!LayerRegistry::has(type)) {
    fail("no layer type \"", type, "\"", suggestion(Vocabulary::layers, type, layer_types()),
         "; `crema layers` lists them");
  }
  const std::string text = documentation_of(type);
  std::cout << text << "\n";
  for (const MessageHelp& message : help_on_parameters(type, layer_types(), text)) {
    std::cout << "\n" << message.field << " { " << message.message << " }\n";
    if (!message.comment.empty()) print_wrapped(message.comment, "  ");
    for (const FieldHelp& field : message.fields) {
      std::cout << "\n  " << field.name << " (" << field.type << ")\n";
      if (!field.comment.empty()) print_wrapped(field.comment, "      ");
    }
  }
  const LayerExample example = example_of(type);
  std::cout << "\nTo paste"
            << (example.bottoms == "files" ? " (it reads files: write yours)"
                : example.bottoms == "-"   ? std::string()
                                           : " (bottoms such as " + example.bottoms + ")")
            << ":\n\n"
            << block_of(example);
}

int run_layers(const VerbCall& call) {
  if (call.arguments.empty()) {
    list_types();
  } else {
    document(call.arguments[0]);
  }
  return 0;
}

REGISTER_VERB(layers, {.summary = "lists the layer types, or prints the documentation of one",
                       .usage = "[TYPE]",
                       .example = "crema layers Convolution",
                       .max_arguments = 1,
                       .run = run_layers});

}  // namespace

}  // namespace crema
