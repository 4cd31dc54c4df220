#include "data/lists/message_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "base/error.h"

namespace crema {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = cat(line + 1, ":", column + 1, ": ", message);
  }
  std::string text;
};

}  // namespace

std::string parse_message(const std::string& text, google::protobuf::Message* message,
                          UnknownFields unknown) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(unknown == UnknownFields::are_ignored);
  if (parser.ParseFromString(text, message)) return "";
  return error.text.empty() ? "1:1: is not such a text" : error.text;
}

}  // namespace crema
