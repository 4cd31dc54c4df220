#include "solver/fields/layer_patterns.h"

#include <google/protobuf/descriptor.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "net/prototxt/prototxt.h"

namespace crema {
namespace {

std::string beginning(const std::string& text) {
  constexpr size_t kMax = 60;
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

// The values of a repeated field of strings, "freeze" or "prune.keep".
std::vector<std::string> values_of(const SolverParameter& solver, const std::string& path) {
  const google::protobuf::Message* message = &solver;
  const std::vector<std::string> names = split(path, '.');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const auto* field = message->GetDescriptor()->FindFieldByName(names[i]);
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  const auto* field = message->GetDescriptor()->FindFieldByName(names.back());
  std::vector<std::string> values;
  for (int i = 0; i < message->GetReflection()->FieldSize(*message, field); ++i)
    values.push_back(message->GetReflection()->GetRepeatedString(*message, field, i));
  return values;
}

}  // namespace

// std::regex recurses with the length of the pattern and of the name; RE2 does not.
LayerPatterns::LayerPatterns(const SolverFile& file, const std::string& field) : field_(field) {
  RE2::Options options(RE2::Latin1);  // names are bytes: they may not be valid UTF-8
  options.set_log_errors(false);
  for (const std::string& text : values_of(file.solver, field)) {
    patterns_.push_back(std::make_shared<const RE2>(text, options));
    if (patterns_.back()->ok()) continue;
    fail(file.where(cat(field, "[", patterns_.size() - 1, "]")), ": ", field, " \"",
         beginning(text), "\" is not a regular expression (", beginning(patterns_.back()->error()),
         "); \"conv1.*\" for example means every layer whose name begins with conv1");
  }
}

bool LayerPatterns::match(const std::string& layer) const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const auto& pattern) { return RE2::FullMatch(layer, *pattern); });
}

void LayerPatterns::require_used(const SolverFile& file, const std::vector<std::string>& layers,
                                 const std::string& kind) const {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const std::string& text = patterns_[i]->pattern();
    const bool used = std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return RE2::FullMatch(layer, *patterns_[i]);
    });
    if (used) continue;
    fail(file.where(cat(field_, "[", i, "]")), ": ", field_, " \"", beginning(text),
         "\" is not the name of ", kind, did_you_mean(text, layers),
         "; a pattern must match the whole name, as \"conv1.*\"");
  }
}

}  // namespace crema
