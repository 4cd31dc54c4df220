#include "solver/readers/iterations_file.h"

#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "solver/events/checksum.h"

namespace crema {
namespace {

constexpr std::string_view kHead = "iteration,loss,weights,parameters\n";
constexpr int kWithParameters = 100;  // rows; those of large nets are long

// A GPU makes thousands of rows a second.
template <typename Number>
void append(Number value, std::string* rows) {
  char text[32];
  rows->append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <typename Number>
bool read_number(std::string_view text, Number* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Rows that begin again at an earlier iteration outdate what is there from it on.
void add_row(int64_t iteration, float loss, RecordedWeights weights, RecordedIterations* all) {
  constexpr int64_t kMostMissing = 1'000'000;  // rows
  if (iteration < all->first || iteration > all->end() + kMostMissing) *all = {};
  if (all->losses.empty()) all->first = iteration;
  all->weights.erase(all->weights.lower_bound(iteration), all->weights.end());
  all->missing.erase(all->missing.lower_bound(iteration), all->missing.end());
  for (int64_t i = all->end(); i < iteration; ++i) all->missing.insert(i);
  all->losses.resize(static_cast<size_t>(iteration - all->first),
                     std::numeric_limits<float>::quiet_NaN());
  all->losses.push_back(loss);
  if (!weights.all.empty()) all->weights[iteration] = std::move(weights);
}

}  // namespace

RecordedWeights recorded_weights(const std::vector<uint64_t>& parameters) {
  RecordedWeights weights;
  for (const uint64_t hash : parameters) weights.parameters.push_back(hex_of(hash).substr(0, 8));
  weights.all =
      hex_of(Checksum().add(parameters.data(), parameters.size() * sizeof(uint64_t)).value());
  return weights;
}

RecordedIterations read_iterations(const std::string& path) {
  const std::string text = read_file(path);
  RecordedIterations all;
  int64_t row = 0;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (++row == 1 && cat(line, "\n") == kHead) continue;
    const std::vector<std::string> cells = split(std::string(line), ',');
    int64_t iteration = 0;
    float loss = 0;
    if (cells.size() != 4 || !read_number(cells[0], &iteration) || !read_number(cells[1], &loss) ||
        iteration < 0 || iteration > std::numeric_limits<int32_t>::max())
      fail(path, ":", row, ": expected iteration,loss,weights,parameters, found \"",
           line.substr(0, 60), "\"");
    RecordedWeights weights{cells[2], {}};
    if (!cells[3].empty()) weights.parameters = split(cells[3], ' ');
    add_row(iteration, loss, std::move(weights), &all);
  }
  return all;
}

void IterationsReader::begin() {
  try {
    if (file_exists(path_)) {
      drop_cut_line(path_);
      return;
    }
  } catch (const std::exception& error) {
    return log_.warning(error.what());
  }
  file_.add(std::string(kHead), RecordFile::Keep::always);
}

void IterationsReader::write(const event::Losses& losses) {
  std::string rows;
  for (size_t i = 0; i < losses.losses.size(); ++i) {
    const int64_t iteration = losses.first + static_cast<int64_t>(i);
    append(iteration, &rows);
    rows += ',';
    append(static_cast<float>(losses.losses[i]), &rows);
    rows += ',';
    const auto weights = waiting_.find(iteration);
    if (weights != waiting_.end()) rows += weights->second.all;
    rows += ",";
    if (weights != waiting_.end() && ++with_parameters_ <= kWithParameters)
      rows += join(weights->second.parameters, " ");
    rows += "\n";
  }
  waiting_.erase(waiting_.begin(), waiting_.lower_bound(losses.first + std::ssize(losses.losses)));
  file_.add(std::move(rows));
}

void IterationsReader::read(const Event& event) {
  if (std::holds_alternative<event::Start>(event)) {
    begin();
  } else if (const auto* losses = std::get_if<event::Losses>(&event)) {
    write(*losses);
  } else if (const auto* weights = std::get_if<event::WeightHashes>(&event)) {
    waiting_[weights->iteration] = recorded_weights(weights->parameters);
  }
}

}  // namespace crema
