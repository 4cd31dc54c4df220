// `crema db peek DB [-model NET.prototxt]`: a contact sheet of records, or of the batch that a net
// gets.
#include "base/error.h"
#include "base/files.h"
#include "base/png.h"
#include "tools/db/db.h"
#include "tools/db/peek_batch.h"

namespace crema {

int run_db_peek(const VerbCall& call, const DbPeekFlags& flags) {
  const std::string database = call.arguments.empty() ? "" : call.arguments[0];
  require(!database.empty() || !flags.model.empty(),
          "a database is needed, or -model NET.prototxt, whose data layer names one");
  for (const char* flag : {"phase", "level", "stage", "set"}) {
    require(!flags.model.empty() || call.given.count(flag) == 0, "-", flag,
            ": goes with -model NET.prototxt");
  }
  constexpr int kMost = 1000;
  require(flags.batch >= 0 && flags.batch <= kMost, "-batch ", flags.batch,
          ": expected the number of pictures, at most ", kMost);
  PeekOptions options;
  if (flags.batch > 0) options.count = flags.batch;
  options.red_first = flags.rgb;
  if (!flags.labels.empty()) options.names = read_class_names(flags.labels);
  const std::vector<SheetCell> cells = flags.model.empty()
                                           ? peek_records(database, options)
                                           : peek_batch(database, options, flags, call.log);
  const std::string output = flags.output.empty() ? "peek.png" : flags.output;
  const Picture sheet = contact_sheet(cells);
  write_file_atomically(output, png_of(sheet));
  call.log.info(cat("Wrote ", cells.size(), " pictures to ", output, ", ", sheet.width, " x ",
                    sheet.height, " pixels"));
  return 0;
}

}  // namespace crema
