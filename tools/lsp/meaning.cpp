#include "tools/lsp/meaning.h"

#include <algorithm>
#include <functional>
#include <future>
#include <set>

#include "base/error.h"
#include "net/check/checks.h"
#include "net/graph/filter.h"
#include "solver/check/check.h"
#include "solver/rates/schedules.h"
#include "tools/lsp/net_reading.h"
#include "tools/lsp/places.h"
#include "tools/lsp/taken_variables.h"

namespace crema {
namespace {

constexpr int kMostMistakesRead = 20;  // each one costs another reading

// Collects the library's warnings.
class Warnings : public Log {
 public:
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    if (severity != Severity::info) lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

class MeaningDiagnosis {
 public:
  MeaningDiagnosis(const Document& document, const OpenFiles& files)
      : document_(document), tree_(document.tree()), files_(files), name_(name_of(document)) {}

  void read_solver() {
    attempt([&] {
      const auto settings = std::make_shared<Settings>(settings_of(name_, files_, &read_));
      const SolverFile file = parse_solver_text(document_.text(), name_, settings);
      CheckOptions options;
      options.reads_data = options.reads_weights = false;
      for (const Finding& finding : check_training(file, options)) {
        // What is wrong with its net is shown there.
        if (starts_with(finding.where, name_ + ":"))
          add(finding.severity, cat(finding.where, ": ", finding.text));
      }
      Warnings log;
      for (const Note& note : file.notes) log.write(note.severity, {}, note.line);
      check_momentum(file, log);
      for (const std::string& line : log.lines) add(Severity::warning, line);
    });
    add(value_hints(tree_, read_.values));
  }

  // Layers with a mistake in their words are taken out of the text, so that the others are understood all the same.
  // wrong: places of such mistakes.
  void read_net(const std::vector<size_t>& wrong) {
    std::string text = tree_.text;
    for (const size_t place : wrong) {
      if (!take_out_layer(place, &text)) return;
    }
    for (int mistakes = 0; mistakes < kMostMistakesRead && !trim(text).empty(); ++mistakes) {
      try {
        read_.values.clear();
        NetReading reading(name_, text, files_, &read_);
        reading.set_lost(lost_);
        const bool is_whole = text == tree_.text;
        read_phases(reading, is_whole);
        if (is_whole) add_unread_data(reading.file()->net);
        break;
      } catch (const Error& error) {
        if (!follows_from_lost(error.what())) add(Severity::error, error.what());
        size_t end = 0;
        const std::optional<size_t> place = place_in(document_, error.what(), &end);
        const std::string before = text;
        if (!place || !take_out_layer(*place, &text) || text == before) break;
      }
    }
    add(value_hints(tree_, read_.values));
  }

  Meaning take() {
    meaning_.files = std::move(read_.files);
    std::stable_sort(meaning_.hints.begin(), meaning_.hints.end(),
                     [](const Hint& a, const Hint& b) { return a.offset < b.offset; });
    return std::move(meaning_);
  }

 private:
  // V0 layers are connected as they are read.
  bool follows_from_lost(const std::string& line) const {
    return std::any_of(lost_.begin(), lost_.end(), [&](const std::string& blob) {
      return line.find(cat("Unknown blob input ", blob, " to layer ")) != std::string::npos;
    });
  }

  // What reading the net in one phase gives.
  struct PhaseReading {
    std::vector<LayerMistake> mistakes;
    Warnings log;
    std::vector<TokenHint> hints;
    Findings findings;
  };

  // Both phases at once where a thread can be had, as an editor waits for them.
  void read_phases(const NetReading& reading, bool is_whole) {
    std::future<PhaseReading> test =
        std::async([&] { return read_phase(TEST, reading, is_whole); });
    const PhaseReading train = read_phase(TRAIN, reading, is_whole);
    add_phase(train);
    add_phase(test.get());
  }

  // Without layers that were taken out, others seem to be read by none.
  PhaseReading read_phase(Phase phase, const NetReading& reading, bool is_whole) const {
    PhaseReading read;
    const MadeNet made = reading.made_in(phase, read.log);
    read.mistakes = made.mistakes;
    if (!made.graph) return read;
    read.hints = hints_of(document_, made);
    if (!made.mistakes.empty() || !is_whole) return read;
    const CheckedNet net(reading.file(), made.input.options.state);
    check_unread(net, &read.findings);
    check_has_loss(net, &read.findings);
    check_batch_norm(net, &read.findings);
    check_learning(net, true, &read.findings);
    return read;
  }

  void add_phase(const PhaseReading& read) {
    for (const LayerMistake& mistake : read.mistakes)
      add(Severity::error, mistake.text, mistake.missing);
    for (const std::string& line : read.log.lines) add(Severity::warning, line);
    for (const TokenHint& placed : read.hints) {
      if (noted_.insert(placed.token).second) meaning_.hints.push_back(placed.hint);
    }
    for (const Finding& finding : read.findings)
      add(finding.severity, cat(finding.where, ": ", finding.text));
  }

  void add(std::vector<Hint> hints) {
    for (Hint& hint : hints) meaning_.hints.push_back(std::move(hint));
  }

  // The layer at a place becomes blank, or a word that begins one. False if there is neither.
  bool take_out_layer(size_t place, std::string* text) {
    const Statement* layer = nullptr;
    each_statement(tree_, type_of(tree_), [&](const TypedPlace& at) {
      const Statement& s = *at.statement;
      const auto* const field = field_of(tree_, at);
      const bool is_layer = field && field->message_type() && !at.layer &&
                            ends_with(field->message_type()->name(), "LayerParameter");
      if (is_layer && begin_of(s) <= place && place < end_of(s)) layer = &s;
    });
    for (const Statement& s : tree_.file.statements) {
      const bool is_simple = s.kind == Statement::Kind::field || s.kind == Statement::Kind::junk;
      if (!layer && is_simple && begin_of(s) <= place && place < end_of(s)) layer = &s;
    }
    if (!layer) return false;
    each_blob(tree_, [&](const Token& token, bool writes, const TypedPlace&) {
      if (writes && begin_of(*layer) <= token.begin && token.begin < end_of(*layer))
        lost_.insert(unquoted(token.text));
    });
    for (size_t at = begin_of(*layer); at < end_of(*layer); ++at) {
      if ((*text)[at] != '\n') (*text)[at] = ' ';
    }
    return true;
  }
  size_t begin_of(const Statement& s) const { return tree_.token(s.all.begin).begin; }
  size_t end_of(const Statement& s) const { return crema::end_of(tree_.token(s.all.end - 1)); }
  static size_t end_of(const Token& token) { return crema::end_of(token); }

  void attempt(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      add(Severity::error, error.what());
    }
  }

  // The file that a mistake in another one came from: that of a solver's net.
  size_t place_of_other_file() const {
    for (const Statement& s : tree_.file.statements) {
      const std::string word = word_of(tree_, s);
      if (s.kind == Statement::Kind::field && (word == "net" || ends_with(word, "_net")))
        return tree_.token(s.all.begin).begin;
    }
    return 0;
  }

  // A line of a message, "net.prototxt:12:3: what", or "block.prototxt:1:2 (included at net.prototxt:12:3): what".
  void add(Severity severity, const std::string& line, const std::string& missing = "") {
    Diagnostic one{0, 0, severity, line, std::nullopt};
    size_t end = 0;
    const std::optional<size_t> place = place_in(document_, line, &end);
    one.begin = place ? *place : place_of_other_file();
    if (place && starts_with(line, name_) && line.substr(end, 2) == ": ")
      one.text = line.substr(end + 2);
    else if (starts_with(line, name_ + ": "))
      one.text = line.substr(name_.size() + 2);
    const Token& token = tree_.tokens[token_index(tree_, one.begin)];
    one.end = std::max(one.begin, end_of(token));
    point_at_word(&one, missing);
    if (!one.fix) rewrite_field(&one);
    const std::vector<Diagnostic>& all = meaning_.diagnostics;
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const Diagnostic& other) {
      return other.begin == one.begin && other.text == one.text;
    });
    if (!is_known) meaning_.diagnostics.push_back(one);
  }

  // From a layer or field to the word in it that is unknown: the missing bottom, or X of `no filler "X" (did you mean
  // "Y"?)`.
  void point_at_word(Diagnostic* one, std::string word) const {
    const std::string meant = suggested(one->text);
    const size_t question = one->text.find(" (did you mean");
    if (word.empty() && !meant.empty()) {
      const size_t close = one->text.rfind('"', question);
      const size_t open =
          close == std::string::npos || close == 0 ? close : one->text.rfind('"', close - 1);
      if (open == std::string::npos) return;
      word = one->text.substr(open + 1, close - open - 1);
    }
    if (word.empty()) return;
    const TypedPlace place = place_at(tree_, type_of(tree_), one->begin);
    if (!place.statement) return;
    const Statement& around = place.layer ? *place.layer : *place.statement;
    for (int at = around.all.begin; at < around.all.end; ++at) {
      const Token& token = tree_.token(at);
      const bool is_text = token.kind == Token::Kind::text;
      if ((is_text ? unquoted(token.text) : std::string(token.text)) != word) continue;
      one->begin = token.begin;
      one->end = end_of(token);
      const std::string text = is_text ? cat('"', meant, '"') : meant;
      if (!meant.empty()) one->fix = Fix{token.begin, end_of(token), text, "Change to " + text};
      return;
    }
  }

  // The field with which a message ends: `; write base_lr: 0.01`.
  void rewrite_field(Diagnostic* one) const {
    constexpr std::string_view kWrite = "write ";
    const size_t write = one->text.rfind(kWrite);
    const TypedPlace place = place_at(tree_, type_of(tree_), one->begin);
    if (write == std::string::npos || !place.statement) return;
    const std::string text = one->text.substr(write + kWrite.size());
    const Statement& s = *place.statement;
    if (!starts_with(text, word_of(tree_, s) + ": ") || s.value.empty()) return;
    one->fix = Fix{begin_of(s), end_of(tree_.token(s.value.end - 1)), text, "Write " + text};
  }

  // Data that no layer of any phase reads.
  void add_unread_data(const NetParameter& net) {
    std::set<std::string> read;
    for (const LayerParameter& layer : net.layer())
      read.insert(layer.bottom().begin(), layer.bottom().end());
    each_blob(tree_, [&](const Token& token, bool writes, const TypedPlace& place) {
      const std::string blob = unquoted(token.text);
      if (!writes || !place.layer || read.count(blob) > 0 || blob.find('$') != std::string::npos)
        return;
      const Block& block = place.layer->blocks[0];
      if (!text_of_field(tree_, block, "bottom").empty() || read.empty()) return;
      meaning_.diagnostics.push_back({token.begin, end_of(token), Severity::info,
                                      cat("no layer reads \"", blob, '"'), std::nullopt,
                                      Diagnostic::Tag::unnecessary});
    });
  }

  const Document& document_;
  const SyntaxTree& tree_;
  const OpenFiles& files_;
  const std::string name_;
  ReadingLog read_;
  std::set<std::string> lost_;  // blobs of layers that were taken out
  Meaning meaning_;
  std::set<size_t> noted_;  // tokens of tops and layers
};

}  // namespace

Meaning meaning_of(const Document& document, const OpenFiles& files,
                   const std::vector<Diagnostic>& words) {
  Meaning nothing;
  const auto* const type = files.type_with_includes(document, &nothing.files);
  if (!type || takes_variables(document, files)) return nothing;
  MeaningDiagnosis diagnosis(document, files);
  std::vector<size_t> wrong;
  for (const Diagnostic& one : words) {
    if (one.severity == Severity::error) wrong.push_back(one.begin);
  }
  if (type->name() == "SolverParameter" && wrong.empty()) diagnosis.read_solver();
  if (type->name() == "NetParameter") diagnosis.read_net(wrong);
  return diagnosis.take();
}

}  // namespace crema
