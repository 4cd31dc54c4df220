#include "net/prototxt/prototxt_parse.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/prototxt/prototxt_diagnosis.h"
#include "proto/options.pb.h"
#include "proto/solver.pb.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

// Keeps the first error; those that follow it are noise.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& text) override {
    if (!problem) problem = Problem{line, column, text};
  }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}

  std::optional<Problem> problem;
};

// Drops a byte order mark; UTF-16 and binary files are refused.
std::string_view without_mark(std::string_view text, const std::string& file) {
  if (starts_with(text, "\xEF\xBB\xBF")) return text.substr(3);
  require(!starts_with(text, "\xFF\xFE") && !starts_with(text, "\xFE\xFF"), file,
          ": this text is UTF-16; save it as UTF-8");
  const bool binary = std::any_of(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' && (c < '\t' || c > '\r'); });
  require(!binary, file, ": is a binary file; expected a text in the form of prototxt");
  return text;
}

// Follows `path` ("layer[3].clip_param.min") to the message of its last field. `layer` becomes the
// name of the innermost layer on the way.
const pb::Message& holder(const pb::Message& root, const std::string& path, std::string* layer) {
  const pb::Message* message = &root;
  std::vector<std::string> parts = split(path, '.');
  parts.pop_back();
  for (const std::string& part : parts) {
    const size_t bracket = part.find('[');
    const auto* field = message->GetDescriptor()->FindFieldByName(part.substr(0, bracket));
    const auto* reflection = message->GetReflection();
    message = field->is_repeated() ? &reflection->GetRepeatedMessage(
                                         *message, field, std::stoi(part.substr(bracket + 1)))
                                   : &reflection->GetMessage(*message, field);
    const auto* name = message->GetDescriptor()->FindFieldByName("name");
    if (ends_with(message->GetDescriptor()->name(), "LayerParameter") && name) {
      *layer = message->GetReflection()->GetString(*message, name);
    }
  }
  return *message;
}

// Fields that a message requires; protobuf alone would name them without a position.
void check_required(const pb::Message& message, const SourceMap& positions) {
  std::vector<std::string> missing;
  message.FindInitializationErrors(&missing);
  if (missing.empty()) return;
  const std::string block = missing[0].substr(0, missing[0].rfind('.') + 1);
  std::vector<std::string> fields;
  for (const std::string& path : missing) {
    if (starts_with(path, block) && path.find('.', block.size()) == std::string::npos) {
      fields.push_back(cat('"', path.substr(block.size()), '"'));
    }
  }
  std::string layer;
  const pb::Message& incomplete = holder(message, missing[0], &layer);
  fail(positions.where(missing[0]), ": ", layer.empty() ? "" : cat("layer \"", layer, "\": "),
       incomplete.GetDescriptor()->name(), " needs ", join(fields, " and "));
}

// The value of a field of a type that can be NaN; otherwise 0.
double real_number(const pb::Message& message, const pb::FieldDescriptor* field, int index) {
  const pb::Reflection* reflection = message.GetReflection();
  if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT)
    return field->is_repeated() ? reflection->GetRepeatedFloat(message, field, index)
                                : reflection->GetFloat(message, field);
  if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE)
    return field->is_repeated() ? reflection->GetRepeatedDouble(message, field, index)
                                : reflection->GetDouble(message, field);
  return 0;
}

// The text format has words for NaN and infinity. No field has a use for NaN, and no bound rejects
// it. A layer may use infinity (a limit that never applies), but a solver's factors may not. Values
// beyond float's range, such as 1e39, are also infinite.
void check_numbers(const pb::Message& message, const std::string& path,
                   const SourceMap& positions) {
  const pb::Reflection* reflection = message.GetReflection();
  const bool finite = message.GetDescriptor() == SolverParameter::descriptor();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const double number = real_number(message, field, i);
      if (std::isfinite(number) && !field->message_type()) continue;
      const std::string at = cat(path, field->name(), field->is_repeated() ? cat("[", i, "]") : "");
      if (std::isnan(number))
        fail(positions.where(at), ": ", field->name(), " is nan, but must be a number");
      if (std::isinf(number) && finite && !field->options().HasExtension(no_effect))
        fail(positions.where(at), ": ", field->name(), " is ", number,
             ", but must be a finite number, at most 3.4e38");
      if (!field->message_type()) continue;
      check_numbers(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                         : reflection->GetMessage(message, field),
                    at + ".", positions);
    }
  }
}

std::shared_ptr<const SourceMap> parse(const SourceText& source, pb::Message* message) {
  FirstError errors;
  auto tree = std::make_unique<SourceMap::Tree>();
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(tree.get());
  parser.AllowPartialMessage(true);
  if (!parser.ParseFromString(source.text(), message)) {
    std::optional<Problem> problem = diagnose(source, message->GetDescriptor());
    if (!problem) problem = errors.problem.value_or(Problem{0, 0, "cannot be parsed"});
    fail(source.where(problem->line, problem->column), ": ", problem->text);
  }
  auto positions = std::make_shared<SourceMap>(source, message->GetDescriptor(), std::move(tree));
  check_required(*message, *positions);
  check_numbers(*message, "", *positions);
  return positions;
}

}  // namespace

std::shared_ptr<const SourceMap> parse_text(const std::string& text, const std::string& file,
                                            pb::Message* message, const Variables& given,
                                            std::vector<std::string>* used,
                                            const ExpandHooks& hooks) {
  return parse(expand(file, std::string(without_mark(text, file)), given, used, hooks), message);
}

void parse_value(const std::string& text, const std::string& name, pb::Message* message) {
  SourceText source(name);
  source.append(text, nullptr, 0, nullptr);
  parse(source, message);
}

}  // namespace crema
