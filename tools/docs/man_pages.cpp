#include "tools/docs/man_pages.h"

#include "base/strings.h"
#include "tools/docs/verb_flags.h"
#include "tools/flags/command_line.h"
#include "tools/verb.h"

namespace crema {

namespace {

// Text that roff prints as it is: its minus would be a hyphen, and a dot or an apostrophe at the
// start of a line a command.
std::string roff_of(const std::string& text) {
  std::string roff;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool begins = at == 0 || text[at - 1] == '\n';
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if (c == '\'') {
      roff += "\\(aq";
    } else if (c == '`') {
      roff += "\\(ga";
    } else if (c == '^') {
      roff += "\\(ha";
    } else if (c == '~') {
      roff += "\\(ti";
    } else {
      roff += (begins && c == '.' ? "\\&" : "") + std::string(1, c);
    }
  }
  return roff;
}

// One sentence to a line, as roff expects it.
std::string roff_paragraph(const std::string& text) {
  std::string lines;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool ends = text[at] == ' ' && at > 1 && text[at - 1] == '.' && text[at - 2] != '.';
    lines += ends ? '\n' : text[at];
  }
  return roff_of(lines) + "\n";
}

std::string head_of(const std::string& name) {
  std::string title;
  for (const char c : name) title += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return cat(".TH \"", roff_of(title), "\" 1 \"\" \"crema ", CREMA_VERSION, "\" \"Crema\"\n");
}

std::string verb_page(const std::string& name, const Verb& verb) {
  std::string page =
      cat(head_of("crema-" + name), ".SH NAME\n", roff_of("crema-" + name), " \\- ",
          roff_of(verb.summary), "\n.SH SYNOPSIS\n.B ", roff_of("crema " + name), "\n");
  if (*verb.usage) page += roff_of(verb.usage) + "\n";
  page += ".SH OPTIONS\n";
  for (const VerbFlag& flag : flags_of(verb)) {
    page += cat(".TP\n.BR ", roff_of("-" + flag.name), " \" (", flag.type,
                flag.initial.empty() ? "" : ", default " + roff_of(flag.initial), ")\"\n",
                roff_paragraph(flag.meaning));
  }
  page += cat(".PP\n", roff_paragraph(about_all_flags()), ".SH EXAMPLES\n");
  for (const std::string& command : split(verb.example, '\n'))
    page += cat(".nf\n", roff_of(command), "\n.fi\n");
  return page + ".SH SEE ALSO\n.BR crema (1)\n";
}

}  // namespace

std::map<std::string, std::string> man_pages() {
  std::map<std::string, std::string> pages;
  std::string all = cat(head_of("crema"), ".SH NAME\ncrema \\- ",
                        "train neural networks that are described in text files\n.SH SYNOPSIS\n",
                        ".B crema\n.I VERB\n[flags] [arguments]\n.SH COMMANDS\n");
  for (const std::string& name : VerbRegistry::names()) {
    const Verb& verb = *VerbRegistry::find(name);
    pages[cat("crema-", name, ".1")] = verb_page(name, verb);
    all += cat(".TP\n.BR ", roff_of("crema-" + name), " (1)\n", roff_of(verb.summary), "\n");
  }
  all += cat(".SH FLAGS\n", roff_paragraph(about_all_flags()));
  pages["crema.1"] = all;
  return pages;
}

}  // namespace crema
