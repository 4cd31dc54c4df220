// `crema fields [PATH]`: the fields of solvers and nets, as -set takes them, with their
// documentation.
#include <unistd.h>

#include <iostream>

#include "tools/console/terminal.h"
#include "tools/docs/schema.h"
#include "tools/verb.h"

namespace crema {

namespace {

constexpr size_t kFieldsIndent = 6, kWidest = 100;

void print_fields(const MessageHelp& message) {
  const size_t width = std::min(columns_of(STDOUT_FILENO), kWidest);
  const std::string indent(kFieldsIndent, ' ');
  std::cout << message.message << "\n";
  for (const FieldHelp& field : message.fields) {
    std::cout << "  " << field.name << " (" << field.type << ")\n";
    if (!field.comment.empty()) std::cout << wrapped(field.comment, width, indent, indent);
  }
}

int run_fields(const VerbCall& call) {
  if (!call.arguments.empty()) {
    print_fields(help_on_fields(call.arguments[0]));
    return 0;
  }
  print_fields(help_on_fields("solver"));
  std::cout << "\n";
  print_fields(help_on_fields("net"));
  return 0;
}

REGISTER_VERB(fields, {.summary = "lists the fields of solvers and nets, with their documentation",
                       .usage = "[solver | net | PATH such as layer.convolution_param]",
                       .example = "crema fields solver\ncrema fields layer.convolution_param",
                       .max_arguments = 1,
                       .run = run_fields});

}  // namespace

}  // namespace crema
