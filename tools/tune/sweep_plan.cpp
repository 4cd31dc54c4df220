#include "tools/tune/sweep_plan.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/visible.h"

namespace crema {

namespace {

using Json = nlohmann::json;

constexpr size_t max_combinations = 100000;
constexpr const char* expected =
    "; expected PATH=VALUE,VALUE..., such as base_lr=0.1,0.01 or "
    "'layer[conv1].convolution_param.num_output=16,32'";

// At commas outside of brackets, braces and quotes.
std::vector<std::string> values_of(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote ? c == quote : c == '"' || c == '\'') quote = quote ? 0 : c;
    if (!quote && (c == '[' || c == '{')) ++depth;
    if (!quote && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth == 0 && !quote) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  for (std::string& value : values) value = trim(value);
  return values;
}

// The number and, as far as a file name may have them, the settings without their paths.
std::string name_of_run(size_t number, const std::vector<std::string>& settings) {
  constexpr size_t longest = 80;
  std::string name = cat(number);
  for (const std::string& setting : settings) {
    const size_t dot = setting.rfind('.', setting.find('='));
    std::string part = "-" + setting.substr(dot == std::string::npos ? 0 : dot + 1);
    for (char& c : part) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._=-", c)) c = '_';
    }
    if (name.size() + part.size() <= longest) name += part;
  }
  return name;
}

constexpr std::pair<SweepRun::State, const char*> state_names[] = {
    {SweepRun::State::waiting, "waiting"}, {SweepRun::State::running, "running"},
    {SweepRun::State::done, "done"},       {SweepRun::State::failed, "failed"},
    {SweepRun::State::stopped, "stopped"},
};

SweepRun::State state_named(const std::string& name) {
  for (const auto& [state, known] : state_names) {
    if (name == known) return state;
  }
  fail("no run of a sweep is \"", name, "\"");
}

}  // namespace

const char* name_of(SweepRun::State state) {
  for (const auto& [known, name] : state_names) {
    if (state == known) return name;
  }
  return "";
}

std::vector<SweepAxis> parse_sweep(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0, "-sweep '", text, "' has no values",
            expected);
    SweepAxis axis{std::string(trim(text.substr(0, equals))), values_of(text.substr(equals + 1))};
    for (size_t i = 0; i < axis.values.size(); ++i) {
      require(!axis.values[i].empty(), "-sweep '", text, "' has an empty value", expected);
      require(std::find(axis.values.begin(), axis.values.begin() + i, axis.values[i]) ==
                  axis.values.begin() + i,
              "-sweep '", text, "' has the value ", axis.values[i], " twice");
    }
    for (const SweepAxis& other : axes)
      require(other.path != axis.path, "-sweep gives values of ", axis.path,
              " twice; put all of them into one -sweep");
    axes.push_back(axis);
  }
  return axes;
}

std::vector<std::vector<std::string>> combinations_of(const std::vector<SweepAxis>& axes, int count,
                                                      uint64_t seed) {
  std::vector<std::vector<std::string>> all(1);
  for (const SweepAxis& axis : axes) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& combination : all) {
      for (const std::string& value : axis.values) {
        longer.push_back(combination);
        longer.back().push_back(cat(axis.path, "=", value));
      }
    }
    all = std::move(longer);
    require(all.size() <= max_combinations, "-sweep: there are more than ", max_combinations,
            " combinations; give fewer values");
  }
  if (count <= 0 || static_cast<size_t>(count) >= all.size()) return all;
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [seed](size_t a, size_t b) { return mix(seed, a) < mix(seed, b); });
  order.resize(count);
  std::sort(order.begin(), order.end());
  std::vector<std::vector<std::string>> chosen;
  for (const size_t i : order) chosen.push_back(all[i]);
  return chosen;
}

std::vector<size_t> SweepRecord::take(const std::vector<std::vector<std::string>>& wanted) {
  std::vector<size_t> indices;
  for (const auto& settings : wanted) {
    const auto known = std::find_if(runs.begin(), runs.end(),
                                    [&](const SweepRun& run) { return run.settings == settings; });
    indices.push_back(known - runs.begin());
    if (known == runs.end()) {
      runs.push_back({name_of_run(runs.size() + 1, settings), settings});
    } else if (known->state != SweepRun::State::done) {
      known->state = SweepRun::State::waiting;
    }
  }
  return indices;
}

SweepRecord read_sweep(const std::string& path) {
  SweepRecord record;
  if (!file_exists(path)) return record;
  try {
    const Json json = Json::parse(read_text(path));
    record.solver = json.at("solver");
    record.flags = json.at("flags").get<std::vector<std::string>>();
    for (const Json& run : json.at("runs")) {
      record.runs.push_back({run.at("run"), run.at("set").get<std::vector<std::string>>(),
                             state_named(run.at("state")), run.value("message", "")});
    }
  } catch (const Json::exception& error) {
    fail(path, ": is not what `crema sweep` wrote (", error.what(),
         "); remove it to start over in that folder");
  }
  return record;
}

void write_sweep(const SweepRecord& record, const std::string& path) {
  Json runs = Json::array();
  for (const SweepRun& run : record.runs) {
    runs.push_back({{"run", run.name}, {"set", run.settings}, {"state", name_of(run.state)}});
    if (!run.message.empty()) runs.back()["message"] = visible(run.message);
  }
  const Json json = {{"solver", record.solver}, {"flags", record.flags}, {"runs", runs}};
  write_file_atomically(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace crema
