// `crema lsp`: a language server for nets and solvers, which an editor starts.
#include <unistd.h>

#include "tools/lsp/server.h"
#include "tools/verb.h"

namespace crema {

namespace {

int run_lsp(const VerbCall&) {
  return LanguageServer(RpcStream(STDIN_FILENO, STDOUT_FILENO)).run();
}

REGISTER_VERB(lsp, {.summary = "tells an editor about nets and solvers as they are written",
                    .usage = "",
                    .example = "crema lsp",
                    .run = run_lsp});

}  // namespace

}  // namespace crema
