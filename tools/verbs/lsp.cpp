// `crema lsp`: a language server for nets and solvers, which an editor starts.
#include <unistd.h>

#include "tools/lsp/server.h"
#include "tools/verb.h"

namespace crema {

namespace {

int run_lsp(const VerbCall& call) {
  if (isatty(STDIN_FILENO) != 0)
    call.log.info("An editor starts this program and talks to it: see tools/edit.md");
  const int code = LanguageServer(RpcStream(STDIN_FILENO, STDOUT_FILENO)).run();
  if (code != 0)
    call.log.error("the input ended without the messages shutdown and exit, which editors send");
  return code;
}

REGISTER_VERB(lsp, {.summary = "tells an editor about nets and solvers as they are written",
                    .usage = "",
                    .example = "crema lsp",
                    .run = run_lsp});

}  // namespace

}  // namespace crema
