// A page for each file of the schema, with a heading for each field: search finds fields by name.
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/strings.h"
#include "tools/docs/manual/fields.h"
#include "tools/docs/manual/markup.h"
#include "tools/docs/manual/site.h"

namespace crema {

namespace {

constexpr int kOursFrom = 5000, kForksFrom = 6000;

// "SolverParameter.momentum"
std::string field_anchor(const MessageHelp& message, const FieldHelp& field) {
  return message.message + "." + field.name;
}

// Type and default of "repeated uint32, default 1".
struct TypeText {
  std::string type, initial;
};

TypeText parts_of(const std::string& text) {
  constexpr std::string_view kDefault = ", default ";
  const size_t at = text.find(kDefault);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + kDefault.size())};
}

// The pages of messages.
using Pages = std::map<std::string, std::string>;

std::string linked_type(const FieldHelp& field, const Pages& pages, const std::string& from) {
  const std::string type = parts_of(field.type).type;
  const auto page = pages.find(field.message);
  if (page == pages.end()) return code_of_text(type);
  const std::string up = from.find('/') == std::string::npos ? "" : "../";
  return cat("[", markdown_of(type), "](", up, page->second, "#", field.message, ")");
}

std::string section_of(const MessageHelp& message, const Origins& origins, const Pages& pages,
                       const std::string& from) {
  std::string text = cat("## ", message.message, " {: #", message.message, " }\n\n");
  if (!message.field.empty()) text += cat("`", message.field, "` of a layer. ");
  text += markdown_of(message.comment) + "\n\n";
  for (const FieldHelp& field : message.fields) {
    text += cat("### ", field.name, " {: #", field_anchor(message, field), " }\n\n",
                linked_type(field, pages, from));
    if (const std::string initial = parts_of(field.type).initial; !initial.empty())
      text += cat(", default ", code_of_text(initial));
    text += cat(" · ", markdown_of(origins.of_field(message, field)), "\n\n",
                markdown_of(field.comment), "\n\n");
  }
  return text;
}

std::string title_of(const std::string& page) {
  std::string title = page.substr(page.rfind('/') + 1);
  title.resize(title.size() - std::string_view(".md").size());
  for (char& c : title) c = c == '_' ? ' ' : c;
  if (starts_with(title, "forks ")) title = title.substr(6) + " (forks)";
  return title;
}

}  // namespace

std::string field_page(const std::string& proto_file) {
  std::string page = proto_file;
  if (starts_with(page, "proto/")) page.erase(0, 6);
  const size_t dot = page.rfind('.');
  return page.substr(0, dot) + ".md";
}

Origins::Origins(const std::string& source) {
  const std::string path = source + "/tests/compat/fork-fields.tsv";
  if (!file_exists(path)) return;
  for (const std::string& line : split(read_text(path), '\n')) {
    const std::vector<std::string> cells = split(line, '\t');
    if (cells.size() < 3 || starts_with(line, "#")) continue;
    std::string& forks = forks_[cells[1]];
    if (forks.find(cells[0]) == std::string::npos) forks += (forks.empty() ? "" : ", ") + cells[0];
  }
}

std::string Origins::of_type(const std::string& type) const {
  const auto at = forks_.find(type);
  return at == forks_.end() ? "" : at->second;
}

std::string Origins::of_field(const MessageHelp& message, const FieldHelp& field) const {
  const auto at = forks_.find(field_anchor(message, field));
  if (at != forks_.end()) return at->second;
  // A block of a fork has small numbers inside.
  const int number = std::max(message.number, field.number);
  return number >= kForksFrom ? "forks of Caffe" : number >= kOursFrom ? "Crema" : "Caffe";
}

std::string field_table(const MessageHelp& message, const Origins& origins,
                        const std::string& folder) {
  std::string table =
      "| field | type | default | meaning | from |\n| --- | --- | --- | --- | --- |\n";
  for (const FieldHelp& field : message.fields) {
    const TypeText type = parts_of(field.type);
    table += cat("| [", markdown_of(field.name), "](", folder, field_page(message.file), "#",
                 field_anchor(message, field), ") | ", markdown_of(type.type), " | ",
                 type.initial.empty() ? "" : code_of_text(type.initial), " | ",
                 markdown_of(field.comment), " | ", markdown_of(origins.of_field(message, field)),
                 " |\n");
  }
  return table;
}

void add_field_pages(const std::string& source, Site* site) {
  const Origins origins(source);
  const std::vector<MessageHelp> messages = help_on_all_messages();
  Pages pages;
  for (const MessageHelp& message : messages) pages[message.message] = field_page(message.file);
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<std::string>> names;
  for (const MessageHelp& message : messages) {
    const std::string page = field_page(message.file);
    std::string& text = texts[page];
    if (text.empty()) {
      text = cat(page.find('/') == std::string::npos ? boosted(3) : "",
                 "# Fields: ", title_of(page), "\n\n");
    }
    text += section_of(message, origins, pages, page);
    names[page].push_back(cat("[", message.message, "](", page, "#", message.message, ")"));
  }
  std::string index =
      "# Fields\n\nThe fields of [solvers](solver.md), [nets](net.md) and [layers](layer.md), and "
      "of the blocks in them.\n\n| file | messages |\n| --- | --- |\n";
  NavEntry section{"Fields", "", {{"", "fields/index.md"}}};
  NavEntry of_layers{"of layer types", "", {}};
  for (const char* first : {"solver.md", "net.md", "layer.md"})
    section.entries.push_back({title_of(first), cat("fields/", first), {}});
  for (const auto& [page, text] : texts) {
    site->add("fields/" + page, text);
    index += cat("| [", title_of(page), "](", page, ") | ", join(names[page], ", "), " |\n");
    if (page == "solver.md" || page == "net.md" || page == "layer.md") continue;
    NavEntry entry{title_of(page), "fields/" + page, {}};
    (starts_with(page, "params/") ? of_layers : section).entries.push_back(std::move(entry));
  }
  section.entries.push_back(std::move(of_layers));
  site->add("fields/index.md", index);
  site->nav.push_back(std::move(section));
}

}  // namespace crema
