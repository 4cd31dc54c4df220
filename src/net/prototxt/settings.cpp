#include "net/prototxt/settings.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/error.h"
#include "net/expand/expression.h"
#include "net/prototxt/exclusive_fields.h"
#include "net/prototxt/other_field_names.h"
#include "net/prototxt/prototxt_parse.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

// One step of a path: "layer[conv1]" is {"layer", "conv1"}.
struct Step {
  std::string name;
  std::optional<std::string> index;
};

// Names of layers may contain dots.
std::vector<Step> steps_of(const std::string& path, const std::string& setting) {
  std::vector<Step> steps;
  size_t at = 0;
  while (true) {
    const size_t end = std::min(path.find_first_of(".[", at), path.size());
    Step step{path.substr(at, end - at), std::nullopt};
    at = end;
    if (at < path.size() && path[at] == '[') {
      const size_t close = path.find(']', at);
      require(close != std::string::npos, setting, ": \"[\" without its \"]\"");
      step.index = path.substr(at + 1, close - at - 1);
      at = close + 1;
    }
    require(!step.name.empty() && (at == path.size() || path[at] == '.'), setting,
            ": expected the path of a field, such as base_lr or "
            "layer[conv1].convolution_param.num_output");
    steps.push_back(step);
    if (at == path.size()) return steps;
    ++at;
  }
}

const pb::FieldDescriptor* field_of(const pb::Descriptor& type, const std::string& name,
                                    const std::string& setting) {
  const pb::FieldDescriptor* field = type.FindFieldByName(name);
  if (field) return field;
  const std::string other_name = other_field_name(type, name);
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  fail(setting, ": ", type.name(), " has no field \"", name, "\"",
       other_name.empty() ? did_you_mean(name, names) : other_name);
}

// The elements of a list of messages that an index selects: all of this name (layers of several
// phases share one), otherwise the one of this number. `*problem` explains why there is none.
std::vector<int> elements(const pb::Message& message, const pb::FieldDescriptor* field,
                          const std::string& index, std::string* problem) {
  const pb::Reflection* reflection = message.GetReflection();
  const int size = reflection->FieldSize(message, field);
  std::vector<int> found;
  std::vector<std::string> names;
  const pb::FieldDescriptor* name =
      field->message_type() && ends_with(field->message_type()->name(), "LayerParameter")
          ? field->message_type()->FindFieldByName("name")
          : nullptr;
  for (int i = 0; name && i < size; ++i) {
    const pb::Message& element = reflection->GetRepeatedMessage(message, field, i);
    names.push_back(element.GetReflection()->GetString(element, name));
    if (names.back() == index) found.push_back(i);
  }
  if (!found.empty()) return found;
  int number = -1;
  const char* end = index.data() + index.size();
  // The number after the last adds an element.
  const bool is_number = std::from_chars(index.data(), end, number).ptr == end;
  if (is_number && number >= 0 && number < size + (name ? 0 : 1)) return {number};
  *problem =
      name ? cat("there is no ", field->name(), " \"", index, "\"", did_you_mean(index, names))
           : cat(field->name(), " has ", size, " elements, counted from 0");
  return {};
}

std::string shown(const pb::Message& message, const pb::FieldDescriptor* field) {
  pb::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) {
    printer.PrintFieldValueToString(message, field, field->is_repeated() ? i : -1,
                                    &values.emplace_back());
    if (field->message_type()) values.back() = "{ " + values.back() + "}";
  }
  const bool list = field->is_repeated() && count != 1;
  return list ? "[" + join(values, ", ") + "]" : values[0];
}

// Texts may be unquoted.
std::string quoted(const std::string& value) {
  const std::string_view inside = trim(value);
  if (!inside.empty() && (inside[0] == '"' || inside[0] == '\'' || inside[0] == '[')) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Literal variable_of(const std::string& text);

// "1/255" is a number.
std::string without_fraction(const std::string& value) {
  if (value.find('/') == std::string::npos) return value;
  const Literal literal = variable_of(value);
  return literal.is_number() || literal.as<Literal::List>() ? written(literal) : value;
}

// A message of this type that has only this field, read from `value`.
std::unique_ptr<pb::Message> parsed(const pb::Message& owner, const pb::FieldDescriptor* field,
                                    const std::string& value, const std::string& setting) {
  std::unique_ptr<pb::Message> message(owner.New());
  const bool text = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
  const bool list = field->is_repeated() && value.find(',') != std::string::npos &&
                    trim(value)[0] != '[' && trim(value)[0] != '{';
  parse_value(cat(field->name(), ": ", list ? "[" : "",
                  text ? quoted(value) : without_fraction(value), list ? "]" : ""),
              setting, message.get());
  std::vector<const pb::FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  require(fields.size() == 1 && fields[0] == field, setting, ": expected one value for ",
          field->name());
  return message;
}

// Sets the field at the end of the path in all elements that the path means; returns what to tell.
class Assignment {
 public:
  Assignment(const std::vector<Step>& steps, const std::string& value, const std::string& setting)
      : steps_(steps), value_(value), setting_(setting) {}

  void set(pb::Message* message, size_t at = 0) {
    const Step& step = steps_[at];
    const pb::FieldDescriptor* field = field_of(*message->GetDescriptor(), step.name, setting_);
    const pb::Reflection* reflection = message->GetReflection();
    const bool last = at + 1 == steps_.size();
    if (step.index) {
      require(field->is_repeated(), setting_, ": ", step.name, " is no list, so it takes no index");
      for (const int i : elements(*message, field, *step.index, &problem)) {
        if (last) {
          set_element(message, field, i);
        } else {
          descend(reflection, message, field, i, at);
        }
      }
    } else if (last) {
      const std::unique_ptr<pb::Message> value = parsed(*message, field, value_, setting_);
      const bool had =
          field->is_repeated() || reflection->HasField(*message, field) || !field->message_type();
      before = had ? shown(*message, field) : "not set";
      reflection->ClearField(message, field);
      message->MergeFrom(*value);
      after = shown(*message, field);
      finish(message, field);
    } else {
      require(field->message_type(), setting_, ": ", step.name, " is a value, it has no fields");
      require(!field->is_repeated(), setting_, ": ", step.name, " is a list: write ", step.name,
              field->name() == "layer" ? "[NAME]" : "[0]");
      set(reflection->MutableMessage(message, field), at + 1);
    }
  }

  bool done = false;
  std::string before, after, problem;
  std::vector<std::string> replaced;  // fields that said the same in another form

 private:
  void descend(const pb::Reflection* reflection, pb::Message* message,
               const pb::FieldDescriptor* field, int i, size_t at) {
    require(field->message_type(), setting_, ": ", steps_[at].name,
            " is a value, it has no fields");
    set(i == reflection->FieldSize(*message, field)
            ? reflection->AddMessage(message, field)
            : reflection->MutableRepeatedMessage(message, field, i),
        at + 1);
  }

  void set_element(pb::Message* message, const pb::FieldDescriptor* field, int i) {
    const pb::Reflection* reflection = message->GetReflection();
    const int size = reflection->FieldSize(*message, field);
    before = shown(*message, field);
    message->MergeFrom(*parsed(*message, field, value_, setting_));
    if (i < size) {
      reflection->SwapElements(message, field, i, size);
      reflection->RemoveLast(message, field);
    }
    after = shown(*message, field);
    finish(message, field);
  }

  void finish(pb::Message* message, const pb::FieldDescriptor* field) {
    for (const std::string& name : clear_alternatives(message, field)) {
      if (std::count(replaced.begin(), replaced.end(), name) == 0) replaced.push_back(name);
    }
    done = true;
  }

  const std::vector<Step>& steps_;
  const std::string &value_, &setting_;
};

// A variable's value: an expression, otherwise a text.
Literal variable_of(const std::string& text) {
  try {
    Cursor cursor;
    cursor.file = std::make_shared<const WrittenFile>(WrittenFile{"", text});
    cursor.tokens = tokens_of(cursor.file->text);
    const Variables none;
    Scopes scopes(none);
    Literal value = evaluate(cursor, scopes);
    if (cursor.token().kind == Token::Kind::end) return value;
  } catch (const Error&) {
  }
  Text escaped;
  const std::string in_quotes = quoted(text);
  escaped.escaped = in_quotes.substr(1, in_quotes.size() - 2);
  return escaped;
}

}  // namespace

Settings::Settings(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    Setting setting;
    setting.text = "-set " + text;
    const size_t equal = text.find('=');
    require(equal != std::string::npos && equal > 0, setting.text,
            ": expected PATH=VALUE, such as base_lr=0.02");
    setting.path = trim(text.substr(0, equal));
    setting.value = text.substr(equal + 1);
    require(!trim(setting.value).empty(), setting.text, ": a value is missing behind \"=\"");
    const std::string root = setting.path.substr(0, setting.path.find_first_of(".["));
    const bool prefixed = root.size() < setting.path.size() && setting.path[root.size()] == '.';
    if (prefixed && (root == "solver" || root == "net")) {
      setting.target = root == "net" ? Target::net : Target::solver;
      setting.path.erase(0, root.size() + 1);
    } else if (starts_with(root, "$")) {
      setting.path.erase(0, 1);
    } else if (SolverParameter::descriptor()->FindFieldByName(root)) {
      setting.target = Target::solver;
    } else if (NetParameter::descriptor()->FindFieldByName(root)) {
      setting.target = Target::net;
    }
    if (setting.target == Target::variable) variables_[setting.path] = variable_of(setting.value);
    settings_.push_back(setting);
  }
}

void Settings::note_used(const std::vector<std::string>& variables) {
  for (Setting& setting : settings_) {
    setting.used |= setting.target == Target::variable &&
                    std::count(variables.begin(), variables.end(), setting.path) > 0;
  }
}

std::vector<Note> Settings::apply(SolverParameter* solver) { return apply(Target::solver, solver); }
std::vector<Note> Settings::apply(NetParameter* net) { return apply(Target::net, net); }

std::vector<Note> Settings::apply(Target target, pb::Message* message) {
  std::vector<Note> notes;
  for (Setting& setting : settings_) {
    if (setting.target != target) continue;
    const std::vector<Step> steps = steps_of(setting.path, setting.text);
    Assignment assignment(steps, setting.value, setting.text);
    assignment.set(message);
    setting.problem = assignment.problem;
    setting.used |= assignment.done;
    if (!assignment.done || setting.told) continue;
    setting.told = true;
    const std::vector<std::string>& replaced = assignment.replaced;
    notes.push_back({Severity::info,
                     cat("Set ", setting.path, ": ", assignment.after, " (was ", assignment.before,
                         ")", replaced.empty() ? "" : cat(" in place of ", join(replaced, ", ")))});
  }
  return notes;
}

void Settings::require_used() const {
  for (const Setting& setting : settings_) {
    if (setting.used) continue;
    if (!setting.problem.empty()) fail(setting.text, ": ", setting.problem);
    require(setting.target != Target::solver, setting.text, ": ", setting.path,
            " is a field of solvers, and none is read here");
    const pb::Descriptor &solver = *SolverParameter::descriptor(),
                         &net = *NetParameter::descriptor();
    std::vector<std::string> names;
    for (const pb::Descriptor* const type : {&solver, &net})
      for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
    std::string other_name = other_field_name(solver, setting.path);
    if (other_name.empty()) other_name = other_field_name(net, setting.path);
    fail(setting.text, ": solver and net have no field \"", setting.path, "\"",
         other_name.empty() ? did_you_mean(setting.path, names) : other_name,
         ", and their files no variable $", setting.path, " ?= VALUE");
  }
}

}  // namespace crema
