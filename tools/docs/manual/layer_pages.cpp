// A page for each layer type: its documentation with the formulas set, the fields that it reads,
// and an example.
#include <algorithm>
#include <cctype>
#include <map>

#include "base/strings.h"
#include "layers/layer.h"
#include "layers/layer_types.h"
#include "tools/docs/formula.h"
#include "tools/docs/layer_examples.h"
#include "tools/docs/layer_text.h"
#include "tools/docs/manual/fields.h"
#include "tools/docs/manual/markup.h"
#include "tools/docs/manual/site.h"

namespace crema {

namespace {

// The folder of the layer's file: "vision".
std::string family_of(const std::string& type) {
  const std::string path = LayerRegistry::find(type)->file;
  const size_t end = path.rfind('/');
  if (end == std::string::npos || end == 0) return "others";
  const std::string folder = path.substr(0, end);
  const std::string family = folder.substr(folder.rfind('/') + 1);
  return family == "layers" ? "others" : family;
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool is_indented(const std::string& line) { return starts_with(line, "  "); }

// "Shapes: ..." begins a paragraph of its own.
bool begins_part(const std::string& line) {
  const size_t colon = line.find(": ");
  if (colon == std::string::npos) return false;
  const std::string label = line.substr(0, colon);
  return label == "Shapes" || label == "Parameters" || label == "Gradient";
}

// Indented lines: formulas are set, others stay as they are.
std::string block_html(const std::vector<std::string>& lines) {
  std::string html = "<div class=\"formula\">\n", words;
  const auto close = [&] {
    if (!words.empty()) html += "<pre>" + html_of(words) + "</pre>\n";
    words.clear();
  };
  for (const std::string& line : lines) {
    if (const auto math = math_of(line)) {
      close();
      html += *math + "\n";
    } else {
      words += (words.empty() ? "" : "\n") + line.substr(2);
    }
  }
  close();
  return html + "</div>\n\n";
}

// A short formula, such as "dx = dy * y."; "" for sentences.
std::string formula_of(std::string text) {
  constexpr size_t kLongest = 110;
  if (ends_with(text, ".")) text.pop_back();
  if (text.size() > kLongest || text.find(". ") != std::string::npos) return "";
  const auto math = math_of(text);
  return math ? "<div class=\"formula\">\n" + *math + "\n</div>\n\n" : "";
}

// A paragraph; the words before a colon at its beginning are a label.
std::string paragraph_of(const std::string& text, const std::string& type) {
  const size_t colon = text.find(": ");
  const std::string label = colon == std::string::npos ? "" : text.substr(0, colon);
  if (begins_part(text)) {
    const std::string body = text.substr(colon + 2), formula = formula_of(body);
    const std::string head = "**" + label + ":** ";
    return formula.empty() ? head + markdown_of(body) + "\n\n" : head + "\n\n" + formula;
  }
  // "Convolution: a filter slides ..." repeats the title.
  if (label == type) return markdown_of(capital(text.substr(colon + 2))) + "\n\n";
  return markdown_of(text) + "\n\n";
}

std::string documentation_page(const std::string& type) {
  std::string page, paragraph;
  std::vector<std::string> block;
  const auto close = [&] {
    if (!paragraph.empty()) page += paragraph_of(paragraph, type);
    if (!block.empty()) page += block_html(block);
    paragraph.clear();
    block.clear();
  };
  for (const std::string& line : split(documentation_of(type), '\n')) {
    if (is_indented(line)) {
      if (!paragraph.empty()) close();
      block.push_back(line);
      continue;
    }
    if (!block.empty() || trim(line).empty() || begins_part(line)) close();
    if (!trim(line).empty()) paragraph += (paragraph.empty() ? "" : " ") + line;
  }
  close();
  return page;
}

std::string page_of(const std::string& type, const Origins& origins) {
  // Search finds a type before its other names, whose pages have the same text.
  const bool named_first = starts_with(documentation_of(type), type + ":");
  std::string page = cat(boosted(named_first ? 3 : 0.5), "# ", markdown_of(type), "\n\n",
                         documentation_page(type));
  if (const std::string from = origins.of_type(type); !from.empty())
    page += cat("**From:** ", markdown_of(from), "\n\n");
  for (const MessageHelp& message :
       help_on_parameters(type, layer_types(), documentation_of(type))) {
    page += cat("## ", markdown_of(message.field), "\n\n", markdown_of(message.comment), "\n\n",
                field_table(message, origins, "../fields/"), "\n");
  }
  const LayerExample example = example_of(type);
  page += "## Example\n\n";
  if (example.bottoms == "files") {
    page += "It reads files: write yours.\n\n";
  } else if (example.bottoms != "-") {
    page += cat("With bottoms such as ", markdown_of(example.bottoms), ":\n\n");
  }
  return page + fenced(block_of(example), "protobuf");
}

// The first sentence.
std::string sentence_of(const std::string& type) {
  const std::vector<std::string> lines = split(documentation_of(type), '\n');
  std::string text;
  for (const std::string& line : lines) {
    if (is_indented(line) || trim(line).empty() || begins_part(line)) break;
    text += (text.empty() ? "" : " ") + line;
  }
  const size_t colon = text.find(": ");
  if (starts_with(text, type) && colon == type.size()) text = capital(text.substr(colon + 2));
  const size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

}  // namespace

void add_layer_pages(const std::string& source, Site* site) {
  const Origins origins(source);
  std::map<std::string, std::vector<std::string>> families;
  for (const std::string& type : layer_types()) {
    families[family_of(type)].push_back(type);
    site->add(cat("layers/", type, ".md"), page_of(type, origins));
  }
  std::string index = "# Layer types\n\n";
  NavEntry section{"Layers", "", {{"", "layers/index.md"}}};
  for (const auto& [family, types] : families) {
    index += cat("## ", capital(family), "\n\n| type | what it does |\n| --- | --- |\n");
    NavEntry entry{capital(family), "", {}};
    for (const std::string& type : types) {
      index += cat("| [", type, "](", type, ".md) | ", markdown_of(sentence_of(type)), " |\n");
      entry.entries.push_back({type, cat("layers/", type, ".md"), {}});
    }
    index += "\n";
    section.entries.push_back(std::move(entry));
  }
  site->add("layers/index.md", index);
  site->nav.push_back(std::move(section));
}

}  // namespace crema
