// Files that are edited at random, as in an editor: whatever they become, the language server's view of the edited text is
// that of a text which is opened anew, and its answers are within the text.
#include "fuzz/fuzz.h"
#include "support.h"
#include "tools/lsp/features.h"
#include "tools/lsp/meaning.h"

namespace crema::tests {
namespace editor_test {

const char* const kNet =
    "name: \"n\u00e4me \U0001F600\"\n$width ?= 8\n"
    "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: [2, 3, 9, 9] } } "
    "}\n"
    "repeat $i = 1..2 {\n  include: \"block.prototxt\" { name: \"b$i\" }\n}\n"
    "layer {\n  name: \"ip\"\n  type: \"InnerProduct\"\n  bottom: \"x\"\n  top: \"ip\"\n"
    "  inner_product_param { num_output: $width weight_filler { type: \"xavier\" } }\n}\n";
const char* const kBlock =
    "layer {  # of a net\n  name: \"${name}_conv\" type: \"Convolution\" bottom: \"x\" top: \"x\"\n"
    "  convolution_param { num_output: 4 kernel_size: 3 pad: 1 }\n}\n";
const char* const kSolver =
    "base_lr: 0.1 lr_policy: \"step\" gamma: 0.1 stepsize: 10 max_iter: 30\n"
    "net_param { layer { name: \"d\" type: \"DummyData\" top: \"d\" dummy_data_param { shape { "
    "dim: 2 } } } }\n";

// A piece of text that is typed or pasted.
std::string piece(Dice& dice, const std::string& other) {
  static const std::vector<std::string> words = {"layer {",
                                                 "}",
                                                 "{",
                                                 "\"",
                                                 "'",
                                                 "\n",
                                                 " ",
                                                 "#",
                                                 "$",
                                                 "$i",
                                                 "${",
                                                 "top: \"x\"",
                                                 "bottom: ",
                                                 "repeat 2 {",
                                                 "if $width > 4 {",
                                                 "else {",
                                                 "include: \"",
                                                 "error: \"e\"",
                                                 "type: \"ReLU\"",
                                                 ": ",
                                                 "-1",
                                                 "1e9",
                                                 "[",
                                                 "]",
                                                 "\u00e4",
                                                 "\U0001F600",
                                                 "\xC3",
                                                 "\r\n",
                                                 "\t",
                                                 "layers {",
                                                 "num_output: 0",
                                                 std::string(1, '\0')};
  if (!dice.one_in(4)) return dice.pick(words);
  const size_t begin = dice.below(other.size());
  return other.substr(begin, dice.below(40));
}

std::string view_of(const Document& document, const OpenFiles& files, size_t offset) {
  std::ostringstream out;
  const std::vector<Diagnostic> words = diagnose_statements(document);
  const Meaning meaning = meaning_of(document, files, words);
  for (const std::vector<Diagnostic>* const list : {&words, &meaning.diagnostics}) {
    for (const Diagnostic& one : *list) {
      require(one.begin <= one.end && one.end <= document.text().size(),
              "a mistake outside of the text");
      out << one.begin << "-" << one.end << " " << one.text
          << (one.fix ? " -> " + one.fix->text : "") << "\n";
    }
  }
  for (const Hint& hint : meaning.hints) {
    require(hint.offset <= document.text().size(), "a hint outside of the text");
    out << hint.offset << " " << hint.text << "\n";
  }
  for (const Json& part :
       {symbols_of(document), folds_of(document), semantic_tokens_of(document),
        completions_at(document, offset, true), references_at(document, offset, files),
        definition_at(document, offset, files)})
    out << part.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  return out.str();
}

void edit_at_random(Dice& dice, const std::string& folder) {
  constexpr int kEdits = 12;
  const std::vector<std::string> names = {"net", "block", "solver"};
  std::vector<std::string> texts = {kNet, kBlock, kSolver};
  OpenFiles files;
  std::vector<std::shared_ptr<Document>> documents;
  const auto uri = [&](size_t i) { return uri_of_path(folder + "/" + names[i] + ".prototxt"); };
  for (size_t i = 0; i < texts.size(); ++i) documents.push_back(files.open(uri(i), texts[i]));
  for (int edit = 0; edit < kEdits; ++edit) {
    const size_t i = dice.below(texts.size());
    std::string& text = texts[i];
    // Positions are between characters.
    const auto is_inside = [&](size_t at) {
      return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    size_t begin = dice.below(text.size() + 1);
    while (is_inside(begin)) ++begin;
    size_t end = std::min(text.size(), begin + (dice.one_in(2) ? 0 : dice.below(12)));
    while (is_inside(end)) ++end;
    const std::string inserted = piece(dice, texts[dice.below(texts.size())]);
    Json change = {{"range", documents[i]->range(begin, end)}, {"text", inserted}};
    const bool is_valid = documents[i]->offset_of(change["range"]["start"]) == begin &&
                          documents[i]->offset_of(change["range"]["end"]) == end;
    if (!is_valid) change.erase("range");  // bytes that are no UTF-8 have no position
    const std::string after = text.substr(0, begin) + inserted + text.substr(end);
    if (!is_valid) change["text"] = after;
    documents[i]->change(change);
    text = after;
    require(documents[i]->text() == text, "the text is another one");
    OpenFiles fresh;
    std::vector<std::shared_ptr<Document>> opened;
    for (size_t k = 0; k < texts.size(); ++k) opened.push_back(fresh.open(uri(k), texts[k]));
    const size_t at = dice.below(text.size() + 1);
    if (view_of(*documents[i], files, at) != view_of(*opened[i], fresh, at))
      fail("an edited text differs from one that is opened: ", text);
  }
}

// What is wrong with the server is no Error of its input.
class Wrong : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

TEST(Fuzz, Editor) {
  // The input is the seed of the edits.
  fuzz({"editor",
        [] {
          return std::vector<Files>{{{"edits", "1"}}, {{"edits", "2"}}};
        },
        [](Dice& dice, Files& files, const Files&) { files["edits"] = cat(dice.word()); },
        [](const std::string& folder, const Files& files) {
          uint64_t seed = 0;
          for (const char c : files.at("edits")) seed = 31 * seed + static_cast<unsigned char>(c);
          Dice dice({seed, 0});
          try {
            edit_at_random(dice, folder);
          } catch (const Error& error) {
            throw Wrong(error.what());
          }
        }});
}

}  // namespace editor_test
}  // namespace crema::tests
