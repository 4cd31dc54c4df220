// `crema db peek DB [-model NET.prototxt]`: a contact sheet of records, or of the batch that a net
// gets.
#include "base/error.h"
#include "base/files.h"
#include "base/png.h"
#include "tools/db/db.h"
#include "tools/db/peek_batch.h"
#include "tools/flags/flags.h"

namespace crema {
int run_db_peek(const VerbCall& call) {
  const std::string database = call.arguments.empty() ? "" : call.arguments[0];
  require(!database.empty() || !FLAGS_model.empty(),
          "a database is needed, or -model NET.prototxt, whose data layer names one");
  for (const char* flag : {"phase", "level", "stage", "set"}) {
    require(!FLAGS_model.empty() || call.given.count(flag) == 0, "-", flag,
            ": goes with -model NET.prototxt");
  }
  constexpr int kMost = 1000;
  require(FLAGS_batch >= 0 && FLAGS_batch <= kMost, "-batch ", FLAGS_batch,
          ": expected the number of pictures, at most ", kMost);
  PeekOptions options;
  if (FLAGS_batch > 0) options.count = FLAGS_batch;
  options.red_first = FLAGS_rgb;
  if (!FLAGS_labels.empty()) options.names = read_class_names(FLAGS_labels);
  const std::vector<SheetCell> cells =
      FLAGS_model.empty() ? peek_records(database, options)
                          : peek_batch(database, options, net_flags(call.flags), call.log);
  const std::string output = FLAGS_output.empty() ? "peek.png" : FLAGS_output;
  const Picture sheet = contact_sheet(cells);
  write_file_atomically(output, png_of(sheet));
  call.log.info(cat("Wrote ", cells.size(), " pictures to ", output, ", ", sheet.width, " x ",
                    sheet.height, " pixels"));
  return 0;
}

}  // namespace crema
