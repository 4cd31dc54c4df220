// Fields of messages as Markdown, and which forks had them.
#pragma once

#include <map>
#include <string>

#include "tools/docs/schema.h"

namespace crema {

// Which programs had a layer type or a field before Crema, by tests/compat/fork-fields.tsv and the
// number of the field.
class Origins {
 public:
  // `source` is the folder with tests/compat; without that file forks have no names.
  explicit Origins(const std::string& source);

  // "Caffe", "Crema", "SegNet, PSPNet", or "forks of Caffe".
  std::string of_field(const MessageHelp& message, const FieldHelp& field) const;
  // "" for a type that the table does not have.
  std::string of_type(const std::string& type) const;

 private:
  std::map<std::string, std::string> forks_;  // "ConvolutionParameter.hole" -> "DeepLab"
};

// The page under fields/ that has a message, by its file: "params/convolution.md".
std::string field_page(const std::string& proto_file);

// A table of the fields; their names link to their places under `folder`, such as "../fields/".
std::string field_table(const MessageHelp& message, const Origins& origins,
                        const std::string& folder);

}  // namespace crema
