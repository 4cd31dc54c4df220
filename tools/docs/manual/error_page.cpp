// The index of error messages.
#include "base/strings.h"
#include "tools/docs/error_index.h"
#include "tools/docs/manual/markup.h"
#include "tools/docs/manual/site.h"

namespace crema {

void add_error_page(Site* site) {
  std::string page =
      boosted(5) +
      "# Error messages\n\nA message names the file, the line and the layer, what was found and "
      "what was expected. This page adds why it comes. Search finds a message by its words.\n\n";
  std::string topic;
  for (const IndexedError& error : indexed_errors()) {
    if (error.topic != topic) page += cat("## ", markdown_of(error.topic), "\n\n");
    topic = error.topic;
    page += cat("### ", markdown_of(error.message), "\n\n**Why:** ", markdown_of(error.why),
                "\n\n**What to do:** ", error.remedy, "\n\n");
  }
  site->add("errors.md", page);
  site->nav.push_back({"Errors", "errors.md", {}});
}

}  // namespace crema
