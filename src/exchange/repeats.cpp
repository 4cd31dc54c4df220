#include "exchange/repeats.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "base/error.h"
#include "net/prototxt/prototxt.h"

namespace crema {

namespace {

constexpr size_t kLeastLayers = 3, kMostLayers = 256, kLeastTimes = 3;
constexpr size_t kMaxDigits = 9;

// One layer: its text, split at the numbers in quoted texts.
struct TextBlock {
  std::string comments;
  std::vector<std::string> pieces;  // around the numbers: one more than these
  std::vector<int64_t> numbers;
  int kind = 0;  // equal if the pieces are
};

// The numbers of quoted texts, such as 3 in "conv3". Those that begin with 0 stay text.
void split_numbers(const std::string& text, TextBlock* block) {
  block->pieces.emplace_back();
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\' && quoted) {  // an escape may have digits
      size_t end = i + 2;
      while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end]))) ++end;
      block->pieces.back() += text.substr(i, end - i);
      i = end;
      continue;
    }
    if (c == '"') quoted = !quoted;
    size_t end = i;
    while (quoted && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))
      ++end;
    if (end == i || end - i > kMaxDigits || (c == '0' && end - i > 1)) {
      end = std::max(end, i + 1);
      block->pieces.back() += text.substr(i, end - i);
    } else {
      block->numbers.push_back(std::stoll(text.substr(i, end - i)));
      block->pieces.emplace_back();
    }
    i = end;
  }
}

struct NetPieces {
  std::string head;  // before the first layer
  std::vector<TextBlock> layers;
  std::string tail;
};

NetPieces pieces_of(const std::string& text) {
  NetPieces net;
  std::string comments, block;
  bool inside = false;
  std::map<std::vector<std::string>, int> kinds;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    if (inside) {
      block += line;
      if (line != "}\n") continue;
      inside = false;
      TextBlock& layer = net.layers.emplace_back();
      layer.comments = std::move(comments);
      comments.clear();
      split_numbers(block, &layer);
      layer.kind = kinds.emplace(layer.pieces, static_cast<int>(kinds.size())).first->second;
    } else if (line == "layer {\n") {
      inside = true;
      block = line;
    } else if (line[0] == '#' || net.layers.empty()) {
      comments += line;
    } else {
      return {};  // not such a text
    }
    if (net.layers.empty() && !inside && line[0] != '#') {
      net.head += comments;
      comments.clear();
    }
  }
  net.tail = comments + (inside ? block : "");
  return net;
}

// `length` layers from `first` on, `times` times.
struct RepeatedRun {
  size_t first = 0, length = 0, times = 1;
  size_t saved() const { return length * (times - 1); }
};

// Whether the numbers of the layers at a, a + step, ... go on evenly at `at`.
bool goes_on(const std::vector<TextBlock>& layers, size_t a, size_t step, size_t at) {
  const TextBlock &first = layers[a], &second = layers[a + step], &now = layers[at];
  if (now.kind != first.kind) return false;
  const auto count = static_cast<int64_t>((at - a) / step);
  for (size_t i = 0; i < first.numbers.size(); ++i)
    if (now.numbers[i] != first.numbers[i] + count * (second.numbers[i] - first.numbers[i]))
      return false;
  return true;
}

RepeatedRun longest_from(const std::vector<TextBlock>& layers, size_t first, size_t end) {
  RepeatedRun best;
  for (size_t length = kLeastLayers; length <= kMostLayers && first + kLeastTimes * length <= end;
       ++length) {
    size_t same = length;
    while (first + same < end && layers[first + same].kind == layers[first + same - length].kind &&
           goes_on(layers, first + same % length, length, first + same))
      ++same;
    const RepeatedRun run{first, length, same / length};
    if (run.times >= kLeastTimes && run.saved() > best.saved()) best = run;
  }
  return best;
}

class RepeatWriter {
 public:
  explicit RepeatWriter(const std::vector<TextBlock>& layers) : layers_(layers) {}

  // Writes the layers from `first` to `end`: the run that saves most, and what surrounds it.
  void write(size_t first, size_t end) {
    RepeatedRun best;
    for (size_t at = first; at < end; ++at) {
      const RepeatedRun run = longest_from(layers_, at, end);
      if (run.saved() > best.saved()) best = run;
    }
    if (best.times == 1) {
      for (size_t i = first; i < end; ++i) write_plain(layers_[i]);
      return;
    }
    write(first, best.first);
    write_run(best);
    write(best.first + best.length * best.times, end);
    any = true;
  }

  std::string text;
  bool any = false;

 private:
  void write_plain(const TextBlock& layer) {
    text += layer.comments + layer.pieces[0];
    for (size_t i = 0; i < layer.numbers.size(); ++i)
      text += std::to_string(layer.numbers[i]) + layer.pieces[i + 1];
  }

  int64_t step_of(const RepeatedRun& run, size_t layer, size_t number) const {
    return layers_[layer + run.length].numbers[number] - layers_[layer].numbers[number];
  }

  // The counter starts at the most common first value of the numbers that grow by one: these are
  // then written as $i.
  int64_t first_count(const RepeatedRun& run) const {
    std::map<int64_t, int> votes;
    for (size_t layer = run.first; layer < run.first + run.length; ++layer)
      for (size_t i = 0; i < layers_[layer].numbers.size(); ++i)
        if (step_of(run, layer, i) == 1) ++votes[layers_[layer].numbers[i]];
    int64_t count = 0;
    int most = 0;
    for (const auto& [value, number] : votes)
      if (number > most) count = value, most = number;
    return count;
  }

  void write_run(const RepeatedRun& run) {
    const int64_t count = first_count(run);
    text += cat("repeat $i = ", count, "..", count + static_cast<int64_t>(run.times) - 1, " {\n");
    for (size_t layer = run.first; layer < run.first + run.length; ++layer) {
      const TextBlock& block = layers_[layer];
      std::string written = block.comments + block.pieces[0];
      for (size_t i = 0; i < block.numbers.size(); ++i) {
        const int64_t step = step_of(run, layer, i), value = block.numbers[i];
        written += number_text(step, value - step * count, value, block.pieces[i + 1]);
        written += block.pieces[i + 1];
      }
      indent(written);
    }
    text += "}\n";
  }

  // step * $i + rest
  static std::string number_text(int64_t step, int64_t rest, int64_t value,
                                 const std::string& behind) {
    if (step == 0) return std::to_string(value);
    const bool goes_on = std::isalnum(static_cast<unsigned char>(behind[0])) || behind[0] == '_' ||
                         behind[0] == '[' || behind[0] == '.';
    if (step == 1 && rest == 0) return goes_on ? "${i}" : "$i";
    const std::string product = step == 1 ? "i" : cat(step, " * $i");
    if (rest == 0) return cat("${", product, "}");
    return cat("${", product, rest > 0 ? " + " : " - ", std::abs(rest), "}");
  }

  void indent(const std::string& lines) {
    for (size_t at = 0; at < lines.size();) {
      const size_t end = lines.find('\n', at) + 1;
      text += "  " + lines.substr(at, end - at);
      at = end;
    }
  }

  const std::vector<TextBlock>& layers_;
};

std::string read_as(const std::string& text) {
  return parse_net_text(text, "the net").net.SerializeAsString();
}

}  // namespace

std::string with_repeats(const std::string& text) {
  const NetPieces net = pieces_of(text);
  // In a text with repeats a dollar sign begins a variable.
  const bool has_variables = text.rfind("$", 0) == 0 || text.find("\n$") != std::string::npos;
  if (!has_variables && text.find('$') != std::string::npos) return text;
  RepeatWriter writer(net.layers);
  writer.write(0, net.layers.size());
  if (!writer.any) return text;
  const std::string shorter = cat(net.head, writer.text, net.tail);
  return read_as(shorter) == read_as(text) ? shorter : text;
}

}  // namespace crema
