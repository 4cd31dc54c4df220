#include "solver/fields/freeze.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/prototxt/prototxt.h"

namespace crema {
namespace {

using Pattern = std::shared_ptr<const RE2>;

// std::regex recurses with the length of the pattern and of the name; RE2 does not.
Pattern pattern_of(const std::string& text) {
  RE2::Options options(RE2::Latin1);  // names are bytes: they may not be valid UTF-8
  options.set_log_errors(false);
  return std::make_shared<const RE2>(text, options);
}

std::string beginning(const std::string& text) {
  constexpr size_t kMax = 60;
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

std::vector<Pattern> patterns_of(const SolverFile& file) {
  std::vector<Pattern> patterns;
  for (int i = 0; i < file.solver.freeze_size(); ++i) {
    const std::string& text = file.solver.freeze(i);
    patterns.push_back(pattern_of(text));
    if (!patterns.back()->ok())
      fail(file.where(cat("freeze[", i, "]")), ": freeze \"", beginning(text),
           "\" is not a regular expression (", beginning(patterns.back()->error()),
           "); \"conv1.*\" for example means every layer whose name begins with conv1");
  }
  return patterns;
}

bool matches(const Pattern& pattern, const std::string& layer) {
  return RE2::FullMatch(layer, *pattern);
}

}  // namespace

std::function<bool(const std::string& layer)> frozen_layers(const SolverFile& file) {
  if (file.solver.freeze_size() == 0) return nullptr;
  return [patterns = patterns_of(file)](const std::string& layer) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const Pattern& pattern) { return matches(pattern, layer); });
  };
}

void check_frozen_layers(const SolverFile& file, const Net& net) {
  std::vector<std::string> layers;
  for (const Parameter& parameter : net.graph().parameters) {
    if (layers.empty() || layers.back() != parameter.layer) layers.push_back(parameter.layer);
  }
  const std::vector<Pattern> patterns = patterns_of(file);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const bool stops = std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return matches(patterns[i], layer);
    });
    if (stops) continue;
    const std::string& text = file.solver.freeze(static_cast<int>(i));
    fail(file.where(cat("freeze[", i, "]")), ": freeze \"", beginning(text),
         "\" is not the name of a layer with parameters", did_you_mean(text, layers),
         "; a pattern must match the whole name, as \"conv1.*\"");
  }
}

}  // namespace crema
