// A page for each verb: what `crema help VERB` prints.
#include "base/strings.h"
#include "tools/docs/manual/markup.h"
#include "tools/docs/manual/site.h"
#include "tools/docs/verb_flags.h"
#include "tools/flags/command_line.h"
#include "tools/verb.h"

namespace crema {

namespace {

std::string page_of_verb(const std::string& name, const Verb& verb) {
  std::string page =
      cat("# crema ", markdown_of(name), "\n\n`crema ", name, "` ", markdown_of(verb.summary),
          ".\n\n", fenced(cat("crema ", name, " ", verb.usage), "text"), "\nFor example:\n\n",
          fenced(verb.example, "bash"), "\n## Flags\n\n");
  page += "| flag | type | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const VerbFlag& flag : flags_of(verb)) {
    page += cat("| ", code_of_text("-" + flag.name), " | ", flag.type, " | ",
                flag.initial.empty() ? "" : code_of_text(flag.initial), " | ",
                markdown_of(flag.meaning), " |\n");
  }
  return page + "\n" + markdown_of(about_all_flags()) + "\n";
}

}  // namespace

void add_verb_pages(Site* site) {
  std::string index = "# Commands\n\n| command | what it does |\n| --- | --- |\n";
  NavEntry section{"Commands", "", {{"", "commands/index.md"}}};
  for (const std::string& name : VerbRegistry::names()) {
    const Verb& verb = *VerbRegistry::find(name);
    const std::string page = name + ".md";
    index += cat("| [", markdown_of(name), "](", page, ") | ", markdown_of(verb.summary), " |\n");
    site->add("commands/" + page, page_of_verb(name, verb));
    section.entries.push_back({name, "commands/" + page, {}});
  }
  site->add("commands/index.md", index + "\n" + markdown_of(about_all_flags()) + "\n");
  site->nav.push_back(std::move(section));
}

}  // namespace crema
