// Parses text files into messages. protobuf's parser decides what is accepted; if it rejects a
// text, a second pass explains in plain words what is wrong and where.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "net/expand/expand.h"
#include "net/prototxt/prototxt_source_map.h"

namespace crema {

// Parses `text`, named `file` in messages, into `message`, after expanding it with the variables of
// `given` (net/expand/expand.h). Error: "file:line:column: what".
std::shared_ptr<const SourceMap> parse_text(const std::string& text, const std::string& file,
                                            google::protobuf::Message* message,
                                            const Variables& given = {},
                                            std::vector<std::string>* used = nullptr,
                                            const ExpandHooks& hooks = {});

// Parses a text that is not in a file, such as a flag's value. Error: "name: what".
void parse_value(const std::string& text, const std::string& name,
                 google::protobuf::Message* message);

}  // namespace crema
