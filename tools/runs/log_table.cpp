#include "tools/runs/log_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/strings.h"
#include "tools/runs/log_line.h"

namespace crema {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The number after `key`; none: there is no key, or something else follows it.
template <typename Number>
std::optional<Number> number_after(std::string_view text, std::string_view key,
                                   size_t* end = nullptr) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + key.size());
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  Number number{};
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) number = Number{};  // such as 1e-400
  if (end) *end = static_cast<size_t>(stop - text.data());
  return number;
}

struct Output {
  int index = 0;
  std::string name;
  double value = 0;
};

// "    Train net output #0: loss = 0.26 (* 1 = 0.26 loss)".
std::optional<Output> output_in(std::string_view message, std::string_view phase) {
  const size_t at = message.find(phase);
  if (at == std::string_view::npos) return std::nullopt;
  message.remove_prefix(at + phase.size());
  size_t end = 0;
  const std::optional<int> index = number_after<int>(message, "#", &end);
  if (!index || message.substr(end, 2) != ": ") return std::nullopt;
  message.remove_prefix(end + 2);
  const std::optional<double> value = number_after<double>(message, " = ");
  if (!value) return std::nullopt;
  return Output{*index, std::string(message.substr(0, message.find(" = "))), *value};
}

class LogReading {
 public:
  void read(std::string_view text) {
    const LogLine line = parse_log_line(text);
    if (is_of_another(line)) return;
    const std::string_view message = line.message;
    if (message.find("] Solving ") != std::string_view::npos || starts_with(message, "Solving "))
      return begin(line);
    if (message.find("Restoring previous solver status") != std::string_view::npos ||
        message.find("Resuming from ") != std::string_view::npos) {
      resumed_ = true;
      return;
    }
    if (const auto back = number_after<int64_t>(message, ". Back to iteration "))
      return drop_from(*back);
    if (const auto iteration = number_after<int64_t>(message, "Iteration ")) {
      move_clock(line);
      return read_iteration(message, *iteration);
    }
    if (iteration_ < 0) return;
    if (const auto output = output_in(message, "Train net output ")) {
      move_clock(line);
      add(&tables_.train, &train_, *output);
    } else if (const auto tested = output_in(message, "Test net output ")) {
      move_clock(line);
      add(&tables_.tests[test_net_], &test_, *tested);
    } else if (const size_t at = message.find("Test score #"); at != std::string_view::npos) {
      move_clock(line);
      size_t end = 0;
      const std::string_view score = message.substr(at);
      const auto index = number_after<int>(score, "#", &end);
      const auto value = number_after<double>(score.substr(end), ": ");
      if (index && value)
        add(&tables_.tests[test_net_], &test_, {*index, cat("score", *index), *value});
    }
  }

  LogTables finish() {
    if (tables_.train.rows.empty()) tables_.train = std::move(losses_);
    fill_first_rates(&tables_.train);
    for (auto& [net, table] : tables_.tests) fill_first_rates(&table);
    return std::move(tables_);
  }

 private:
  // The row that outputs go to. It ends where one with the same number comes again.
  struct Open {
    bool open = false;
    std::map<int, size_t> column_of;  // by number of the output
  };

  bool is_of_another(const LogLine& line) {
    if (line.rank.empty()) return false;
    if (rank_.empty()) rank_ = line.rank;
    return rank_ != line.rank;
  }

  void begin(const LogLine& line) {
    // The time since the last run's last line is a pause.
    if (line.stamp) last_ = *line.stamp;
    train_.open = test_.open = false;
  }

  void move_clock(const LogLine& line) {
    if (!line.stamp) return;
    if (last_) seconds_ += seconds_between(*last_, *line.stamp);
    last_ = line.stamp;
    has_times_ = true;
  }

  void read_iteration(std::string_view message, int64_t iteration) {
    if (resumed_) drop_from(iteration);
    resumed_ = false;
    if (iteration != iteration_) train_.open = test_.open = false;
    iteration_ = iteration;
    if (const auto net = number_after<int>(message, "Testing net (#")) {
      test_net_ = *net;
      test_.open = false;
    } else if (const auto rate = number_after<double>(message, ", lr = ")) {
      rate_ = *rate;
      set_rate(&tables_.train);
      set_rate(&losses_);
      for (auto& [net_number, table] : tables_.tests) set_rate(&table);
    } else if (const auto loss = number_after<double>(message, ", loss = ")) {
      Open row;
      add(&losses_, &row, {0, "loss", *loss});
    }
  }

  void add(LogTable* table, Open* open, const Output& output) {
    if (!open->open || open->column_of.count(output.index) > 0) {
      open->column_of.clear();
      open->open = true;
      table->rows.push_back({iteration_, has_times_ ? seconds_ : kNan, rate_});
    }
    const size_t column = column_for(table, *open, output.name);
    open->column_of[output.index] = column;
    LogTable::Row& row = table->rows.back();
    row.values.resize(std::max(row.values.size(), column + 1));
    row.values[column] = output.value;
  }

  // The first of this name that the row has no value for.
  static size_t column_for(LogTable* table, const Open& open, const std::string& name) {
    std::vector<std::string>& columns = table->columns;
    for (int element = 0;; ++element) {
      const std::string wanted = element == 0 ? name : cat(name, "[", element, "]");
      const auto at = std::find(columns.begin(), columns.end(), wanted);
      const auto column = static_cast<size_t>(at - columns.begin());
      if (at == columns.end()) columns.push_back(wanted);
      if (std::none_of(open.column_of.begin(), open.column_of.end(),
                       [&](const auto& taken) { return taken.second == column; }))
        return column;
    }
  }

  // The line with an iteration's rate follows those with its outputs.
  void set_rate(LogTable* table) const {
    for (auto row = table->rows.rbegin(); row != table->rows.rend() && row->iteration == iteration_;
         ++row)
      row->rate = rate_;
  }

  // Rows before the first line with a rate.
  static void fill_first_rates(LogTable* table) {
    const auto known = std::find_if(table->rows.begin(), table->rows.end(),
                                    [](const auto& row) { return !std::isnan(row.rate); });
    if (known == table->rows.end()) return;
    for (auto row = table->rows.begin(); row != known; ++row) row->rate = known->rate;
  }

  void drop_from(int64_t iteration) {
    const auto drop = [&](LogTable* table) {
      std::erase_if(table->rows, [&](const auto& row) { return row.iteration >= iteration; });
    };
    drop(&tables_.train);
    drop(&losses_);
    for (auto& [net, table] : tables_.tests) drop(&table);
    train_.open = test_.open = false;
  }

  LogTables tables_;
  LogTable losses_;  // of "Iteration N, loss = v"
  Open train_, test_;
  int64_t iteration_ = -1;
  int test_net_ = 0;
  double rate_ = kNan, seconds_ = 0;
  bool resumed_ = false, has_times_ = false;
  std::optional<LogStamp> last_;
  std::string rank_;
};

// As Python's repr() writes a number: "0.0001", "1e-05", "100.0", "nan".
std::string python_number(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  char text[40];
  const double size = std::abs(number);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, number,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string written(text, end);
  if (!scientific && written.find('.') == std::string::npos) written += ".0";
  return written;
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

LogTables read_log(std::istream& log) {
  LogReading reading;
  for (std::string line; std::getline(log, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    reading.read(line);
  }
  return reading.finish();
}

std::string csv_of(const LogTable& table) {
  std::vector<std::string> cells = {"NumIters", "Seconds", "LearningRate"};
  for (const std::string& column : table.columns) cells.push_back(csv_text(column));
  std::string text = join(cells, ",") + "\n";
  for (const LogTable::Row& row : table.rows) {
    cells = {python_number(static_cast<double>(row.iteration)),
             // Logs have microseconds.
             python_number(std::round(row.seconds * 1e6) / 1e6), python_number(row.rate)};
    for (size_t i = 0; i < table.columns.size(); ++i)
      cells.push_back(i < row.values.size() && row.values[i] ? python_number(*row.values[i]) : "");
    text += join(cells, ",") + "\n";
  }
  return text;
}

}  // namespace crema
