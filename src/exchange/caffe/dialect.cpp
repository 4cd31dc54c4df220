#include "exchange/caffe/dialect.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/strings.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "field", "field!", "field(1 2)", "field[1]" or "field_h+field_w".
void add_field(const std::string& block, std::string text, DialectLayer* layer) {
  DialectField field{block, "", {}, 0, "", text.back() == '!'};
  if (field.always) text.pop_back();
  field.name = text;
  if (const size_t at = text.find('('); at != std::string::npos) {
    field.name = text.substr(0, at);
    field.values = split(text.substr(at + 1, text.size() - at - 2), ' ');
  } else if (const size_t at = text.find('['); at != std::string::npos) {
    field.name = text.substr(0, at);
    field.most = std::stoi(text.substr(at + 1));
  } else if (const size_t at = text.find('+'); at != std::string::npos) {
    const std::string first = text.substr(0, at), second = text.substr(at + 1);
    layer->fields.push_back({block, first, {}, 0, second, false});
    layer->fields.push_back({block, second, {}, 0, first, false});
    return;
  }
  layer->fields.push_back(field);
}

// Words, of which one may have blanks in parentheses.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool open = false, within = false;
  for (const char c : line) {
    if (c == '(') within = true;
    if (c == ')') within = false;
    if (c == ' ' && !within) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  return words;
}

DialectLayer layer_of(const std::vector<std::string>& words) {
  DialectLayer layer;
  std::string block;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (const size_t at = word.find('='); at != std::string::npos) {
      const std::string name = word.substr(0, at), value = word.substr(at + 1);
      if (name == "given") {
        layer.given = value;
      } else if (name == "batch") {
        layer.keeps_batch = value == "kept";
      } else if (name == "second") {
        layer.second_axes = std::stoi(value);
      } else if (const size_t dots = value.find(".."); dots != std::string::npos) {
        layer.least_axes = std::stoi(value);
        layer.axes = std::stoi(value.substr(dots + 2));
      } else {
        (name == "bottoms" ? layer.bottoms
         : name == "tops"  ? layer.tops
                           : layer.axes) = std::stoi(value);
      }
    } else if (word.back() == ':') {
      block = word.substr(0, word.size() - 1);
    } else {
      add_field(block, word, &layer);
    }
  }
  return layer;
}

Dialect read_dialect(const std::string& name) {
  Dialect dialect, base;
  dialect.name = name;
  std::istringstream lines(dialect_texts().at(name));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || line[0] == '#') continue;
    if (words[0] == "about:") {
      dialect.about = trim(line.substr(words[0].size()));
    } else if (words[0] == "extends:") {
      base = read_dialect(words[1]);
    } else if (words[0] == "without:") {
      for (size_t i = 1; i < words.size(); ++i) base.layers.erase(words[i]);
    } else {
      dialect.layers[words[0]].push_back(layer_of(words));
    }
  }
  dialect.layers.insert(base.layers.begin(), base.layers.end());
  return dialect;
}

const std::map<std::string, Dialect>& all_dialects() {
  static const std::map<std::string, Dialect> all = [] {
    std::map<std::string, Dialect> read;
    for (const auto& [name, text] : dialect_texts()) read.emplace(name, read_dialect(name));
    return read;
  }();
  return all;
}

// The value of a field that is not a message, as a file says it.
std::string value_text(const Message& message, const FieldDescriptor* field, int index) {
  if (field->enum_type() && index < 0)
    return message.GetReflection()->GetEnum(message, field)->name();
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, index, &text);
  return text;
}

// One form of a layer against a message.
class FormCheck {
 public:
  FormCheck(const std::string& name, const DialectLayer& form, const LayerParameter& layer)
      : name_(name), form_(form), layer_(layer) {}

  std::vector<Misfit> run(const std::vector<Shape>& bottoms, const std::vector<Shape>& tops) {
    if (form_.bottoms > 0 && layer_.bottom_size() > form_.bottoms)
      add(cat(name_, " takes ", form_.bottoms == 1 ? "one bottom" : cat(form_.bottoms, " bottoms"),
              ", not ", layer_.bottom_size()),
          cat("bottom[", form_.bottoms, "]"));
    if (form_.tops > 0 && layer_.top_size() > form_.tops)
      add(cat(name_, " takes one top, not ", layer_.top_size()), cat("top[", form_.tops, "]"));
    for (const Shape& bottom : bottoms) {
      if ((form_.axes == 0 || bottom.axes() <= form_.axes) && bottom.axes() >= form_.least_axes)
        continue;
      add(cat(name_, " takes ", form_.least_axes == 0 ? "at most " : "",
              form_.least_axes > 0 && form_.least_axes < form_.axes ? cat(form_.least_axes, " to ")
                                                                    : std::string(),
              form_.axes, " axes, not ", bottom.brief()));
      break;
    }
    const auto batch_of = [](const Shape& shape) { return shape.axes() > 0 ? shape[0] : 1; };
    for (const Shape& top : tops) {
      if (!form_.keeps_batch || bottoms.empty() || batch_of(top) == batch_of(bottoms[0])) continue;
      add(cat(name_, " keeps the batch as it is, and does not make ", top.brief(), " of ",
              bottoms[0].brief()));
    }
    if (form_.second_axes > 0 && (bottoms.size() < 2 || bottoms[1].axes() != form_.second_axes))
      add(cat(name_, " takes a second bottom with ", form_.second_axes, " axes"));
    if (!form_.given.empty() &&
        !layer_.GetReflection()->HasField(
            layer_, LayerParameter::descriptor()->FindFieldByName(form_.given)))
      add(cat(name_, " takes the layer with ", form_.given, " only"));
    std::vector<const FieldDescriptor*> given;
    layer_.GetReflection()->ListFields(layer_, &given);
    for (const FieldDescriptor* field : given)
      if (field->message_type() && ends_with(field->name(), "_param")) check_block(field);
    for (const DialectField& field : form_.fields) check_value(field);
    return std::move(misfits_);
  }

 private:
  void add(const std::string& text, const std::string& field = "") {
    misfits_.push_back({text, field});
  }
  static std::string path_of(const FieldDescriptor* block, const FieldDescriptor* field) {
    return cat(block->name(), ".", field->name());
  }

  // The fields of a block that are given.
  void check_block(const FieldDescriptor* block) {
    const Message& message = block->is_repeated()
                                 ? layer_.GetReflection()->GetRepeatedMessage(layer_, block, 0)
                                 : layer_.GetReflection()->GetMessage(layer_, block);
    std::vector<const FieldDescriptor*> given;
    message.GetReflection()->ListFields(message, &given);
    for (const FieldDescriptor* field : given) {
      const auto known =
          std::find_if(form_.fields.begin(), form_.fields.end(), [&](const DialectField& one) {
            return one.block == block->name() && one.name == field->name();
          });
      if (known == form_.fields.end()) {
        add(cat(name_, " does not read ", path_of(block, field)), path_of(block, field));
        continue;
      }
      const auto* partner = message.GetDescriptor()->FindFieldByName(known->partner);
      if (partner && !message.GetReflection()->HasField(message, partner))
        add(cat(name_, " reads ", field->name(), " only together with ", known->partner),
            path_of(block, field));
      if (known->most > 0 && field->is_repeated() &&
          message.GetReflection()->FieldSize(message, field) > known->most)
        add(cat(name_, " reads ", field->name(), " once only"), path_of(block, field));
    }
  }

  // The value of a field, given or by default.
  void check_value(const DialectField& field) {
    if (field.values.empty()) return;
    const auto* block = LayerParameter::descriptor()->FindFieldByName(field.block);
    const Message& message = layer_.GetReflection()->GetMessage(layer_, block);
    const auto* one = message.GetDescriptor()->FindFieldByName(field.name);
    // What is absent and has no default is decided by the phase.
    if (!message.GetReflection()->HasField(message, one) && !one->has_default_value()) return;
    const std::string value = value_text(message, one, -1);
    if (std::find(field.values.begin(), field.values.end(), value) == field.values.end())
      add(cat(name_, " takes ", field.name, ": ", join(field.values, " or "), ", not ", value),
          path_of(block, one));
  }

  const std::string& name_;  // the dialect's name
  const DialectLayer& form_;
  const LayerParameter& layer_;
  std::vector<Misfit> misfits_;
};

}  // namespace

std::string text_of(const std::vector<Misfit>& misfits) {
  std::vector<std::string> texts;
  for (const Misfit& misfit : misfits) texts.push_back(misfit.text);
  return join(texts, "; ");
}

bool Dialect::has_field(const std::string& type, const std::string& block,
                        const std::string& field) const {
  const auto found = layers.find(type);
  if (found == layers.end()) return false;
  for (const DialectLayer& form : found->second)
    for (const DialectField& one : form.fields)
      if (one.block == block && one.name == field) return true;
  return false;
}

std::vector<DialectField> Dialect::always(const std::string& type) const {
  std::vector<DialectField> fields;
  if (const auto found = layers.find(type); found != layers.end())
    for (const DialectField& one : found->second.front().fields)
      if (one.always) fields.push_back(one);
  return fields;
}

std::vector<Misfit> Dialect::misfits(const LayerParameter& layer, const std::vector<Shape>& bottoms,
                                     const std::vector<Shape>& tops) const {
  const auto found = layers.find(layer.type());
  if (found == layers.end()) return {{cat(name, " has no layer of type ", layer.type()), ""}};
  std::vector<Misfit> least;
  for (size_t i = 0; i < found->second.size(); ++i) {
    const std::vector<Misfit> here = FormCheck(name, found->second[i], layer).run(bottoms, tops);
    if (i == 0 || here.size() < least.size()) least = here;
  }
  return least;
}

const std::vector<std::string>& dialect_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, text] : dialect_texts()) all.push_back(name);
    return all;
  }();
  return names;
}

const Dialect& find_dialect(std::string_view name, std::string_view setting) {
  const auto found = all_dialects().find(std::string(name));
  require(found != all_dialects().end(), setting, " ", name, ": there is no such dialect",
          did_you_mean(name, dialect_names()), "; it takes ", join(dialect_names(), ", "));
  return found->second;
}

}  // namespace crema
