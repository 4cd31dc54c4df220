// `crema docs -output DIR [FOLDER]`: writes the sources of the manual's site and the man pages.
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "tools/docs/man_pages.h"
#include "tools/docs/manual/site.h"
#include "tools/pages_folder.h"
#include "tools/verb.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

using DocsFlags = FlagsOf<"output">;

// An earlier manual is replaced, any other content refused.
bool has_manual(const std::string& folder) {
  const std::string config = folder + "/mkdocs.yml";
  return file_exists(config) && starts_with(read_text(config), "# Written by `crema docs`");
}

void require_free(const std::string& folder) {
  require(list_folder_if_exists(folder).empty() || has_manual(folder), "-output ", visible(folder),
          ": the folder is not empty; expected a new one or an earlier manual");
}

void prepare_folder(const std::string& folder) {
  if (has_manual(folder)) {
    fs::remove_all(folder + "/docs");
    fs::remove_all(folder + "/man");
  }
  fs::create_directories(folder + "/man/man1");
}

int run_docs(const VerbCall& call, const DocsFlags& flags) {
  require(!flags.output.empty(), "give a folder for the manual: -output DIR");
  require_free(flags.output);
  const std::string source = call.arguments.empty()
                                 ? pages_folder("name their folder: crema docs -output DIR FOLDER")
                                 : call.arguments[0];
  Site site;
  add_verb_pages(&site);
  add_layer_pages(source, &site);
  add_field_pages(source, &site);
  add_error_page(&site);
  add_written_pages(source, &site);
  add_model_pages(source, &site);
  site.add("manual.css", std::string(manual_style_bytes()));
  site.add("iframe-worker.js", std::string(manual_worker_bytes()));
  prepare_folder(flags.output);
  site.write(flags.output);
  for (const auto& [name, text] : man_pages())
    write_file_atomically(cat(flags.output, "/man/man1/", name), text, AtomicFile::Leftovers::keep);
  call.log.info(cat("Wrote ", flags.output));
  return 0;
}

REGISTER_VERB(docs, {.summary = "writes the manual: the sources of a site, and man pages",
                     .usage = "-output DIR [FOLDER with Crema's pages]",
                     .example = "crema docs -output manual",
                     .meanings = {{"output", "The folder to write: new, or an earlier manual."}},
                     .max_arguments = 1,
                     .log = LogStyle::brief,
                     .run = run_docs});

}  // namespace

}  // namespace crema
