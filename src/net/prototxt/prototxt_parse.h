// Parses text files into messages. protobuf's parser decides what is accepted; when it rejects a
// text, a second pass over it says in plain words what is wrong and where.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "net/prototxt/prototxt_source_map.h"

namespace crema {

// Parses `text`, named `file` in messages, into `message`. Error: "file:line:column: what".
std::shared_ptr<const SourceMap> parse_text(const std::string& text, const std::string& file,
                                            google::protobuf::Message* message);

}  // namespace crema
