#include "layers/row.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

namespace crema {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const std::string& word : split(text, ' ')) {
    if (!word.empty()) all.push_back(word);
  }
  return all;
}

// "0.5,2" -> {0.5, 2}.
std::vector<double> parse_numbers(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string& number : split(text, ',')) numbers.push_back(std::atof(number.c_str()));
  return numbers;
}

// "uniform(0.5,2)" -> {0.5, 2}.
std::vector<double> arguments(const std::string& call) {
  const size_t open = call.find('('), close = call.rfind(')');
  require(open != std::string::npos && close == call.size() - 1, "\"", call,
          "\" needs arguments in parentheses");
  return parse_numbers(std::string_view(call).substr(open + 1, close - open - 1));
}

Shape parse_shape(const std::string& text) {
  std::vector<int64_t> dims;
  if (text == "scalar") return Shape();
  for (const std::string& extent : split(text, 'x')) {
    require(!extent.empty() && extent.find_first_not_of("0123456789") == std::string::npos, "\"",
            text, "\" is not a shape such as 2x3x8x7");
    dims.push_back(std::atoll(extent.c_str()));
  }
  return Shape(dims);
}

void read_option(const std::string& option, Row& row) {
  const size_t equals = option.find('=');
  const std::string key = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (key == "phase") {
    row.training = value != "TEST";
  } else if (key == "no_gradient") {
    row.gradient = false;
  } else if (key == "bottom_slopes") {
    row.bottom_slopes = value != "no";
  } else if (key == "rounding_decides") {
    row.rounding_decides = true;
  } else if (key == "parameter_slopes") {
    row.parameter_slopes = value != "no";
  } else if (key == "accumulation") {
    row.accumulation = value != "no";
  } else if (key == "differentiable") {
    for (const std::string& index : split(value, ','))
      row.differentiable.push_back(std::atoi(index.c_str()));
  } else if (key == "through_relu") {
    row.through_relu = std::strtof(value.c_str(), nullptr);
  } else if (key == "gradient_tops") {
    row.gradient_tops = std::atoi(value.c_str());
  } else if (key == "expect") {
    row.expected = parse_numbers(value);
  } else if (key == "tolerance") {
    row.tolerance = std::atof(value.c_str());
  } else if (key == "gradient_tolerance") {
    row.gradient_tolerance = std::atof(value.c_str());
  } else if (key == "step") {
    row.step = std::atof(value.c_str());
  } else {
    fail("unknown option \"", option, "\"");
  }
}

Row parse_row(const std::string& line) {
  Row row;
  const std::vector<std::string> columns = split(line, '|');
  require(columns.size() == 3 || columns.size() == 4,
          "a row is `name | bottoms | layer text [| options]`");
  row.name = trim(columns[0]);
  for (const std::string& bottom : words(columns[1])) {
    const size_t colon = bottom.find(':');
    RowBottom parsed{parse_shape(bottom.substr(0, colon)), "normal"};
    if (colon != std::string::npos) parsed.fill = bottom.substr(colon + 1);
    row.bottoms.push_back(parsed);
  }
  row.text = trim(columns[2]);
  if (columns.size() == 4) {
    std::string options = columns[3];
    const size_t error = options.find("error=");
    if (error != std::string::npos) {
      row.error = trim(std::string_view(options).substr(error + 6));
      options.resize(error);
    }
    for (const std::string& option : words(options)) read_option(option, row);
  }
  return row;
}

}  // namespace

std::string Row::id() const {
  std::string id = file + "_" + name;
  for (char& c : id) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return id;
}

std::vector<Row> read_rows(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".rows") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Row> rows;
  for (const std::filesystem::path& file : files) {
    int number = 0;
    for (const std::string& line : split(read_file(file.string()), '\n')) {
      ++number;
      if (trim(line).empty() || trim(line)[0] == '#') continue;
      try {
        rows.push_back(parse_row(line));
      } catch (const Error& error) {
        fail(file.string(), ":", number, ": ", error.what());
      }
      rows.back().file = file.stem().string();
    }
  }
  return rows;
}

std::vector<double> make_values(const Row& row, int index) {
  const std::string& fill = row.bottoms[index].fill;
  const int64_t count = row.bottoms[index].shape.count();
  const Random random{2024, mix(static_cast<uint64_t>(index), static_cast<uint64_t>(count))};
  std::vector<double> values(count);
  const auto each = [&](auto value) {
#pragma omp parallel for if (count > 10000)
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(value(i));
  };
  if (fill == "normal") {
    each([&](int64_t i) { return random.normal(i); });
  } else if (fill == "nonzero") {
    each([&](int64_t i) { return random.normal(i) + std::copysign(0.1f, random.normal(i)); });
  } else if (starts_with(fill, "uniform")) {
    const std::vector<double> range = arguments(fill);
    require(range.size() == 2, "uniform takes two numbers");
    each([&](int64_t i) { return range[0] + (range[1] - range[0]) * random.uniform(i); });
  } else if (starts_with(fill, "labels")) {
    const double labels = arguments(fill).at(0);
    each([&](int64_t i) { return std::floor(labels * random.uniform(i)); });
  } else if (starts_with(fill, "values")) {
    const std::vector<double> numbers = arguments(fill);
    each([&](int64_t i) { return numbers.at(i % numbers.size()); });
  } else if (fill == "spaced") {
    // A shuffled ladder; bottoms of one row are at different fractions of a rung, so that they do
    // not tie either.
    std::vector<int64_t> position(count);
    std::iota(position.begin(), position.end(), 0);
    for (int64_t i = count - 1; i > 0; --i)
      std::swap(position[i], position[random.word64(i) % (i + 1)]);
    const double rung = std::min(0.02, 10.0 / static_cast<double>(count));
    const double fraction = (index + 0.5) / static_cast<double>(row.bottoms.size() + 1);
    each([&](int64_t i) {
      return (static_cast<double>(position[i] - count / 2) + fraction) * rung;
    });
  } else {
    fail("unknown fill \"", fill, "\"");
  }
  return values;
}

}  // namespace crema
