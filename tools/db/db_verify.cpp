// `crema db verify DB`: reads, parses and decodes every record.
#include "data/convert/db_verify.h"

#include <iostream>

#include "base/error.h"
#include "data/databases/find_database.h"
#include "tools/db/db.h"

namespace crema {

int run_db_verify(const VerbCall& call, const DbVerifyFlags& flags) {
  const std::string& path = call.arguments[0];
  const FoundDatabase database = find_database(path);
  const Verified found = verify_database(*database.source, threads_for(flags.threads), call.log);
  if (found.repeated > 0) {
    const std::string text =
        cat(path, ": ", found.repeated, " of ", found.records, " records repeat an earlier one, ",
            found.contradicting, " of them with another label");
    if (flags.strict && found.damaged == 0) fail(text, "; a warning without -strict");
    call.log.warning(text);
  }
  if (found.damaged > 0) {
    fail(path, ": ", found.damaged, " of ", found.records,
         " records are damaged; convert the data again");
  }
  std::cout << found.checksum << "  " << path << "\n";
  call.log.info(cat("All ", found.records, " records can be read."));
  return 0;
}

}  // namespace crema
