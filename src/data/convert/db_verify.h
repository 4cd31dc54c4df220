// Looks for problems in a database.
#pragma once

#include <string>

#include "base/log.h"
#include "data/databases/source.h"

namespace crema {

struct Verified {
  int64_t records = 0;
  int64_t damaged = 0;        // cannot be read, parsed or decoded
  int64_t repeated = 0;       // have the picture or values of an earlier record
  int64_t contradicting = 0;  // among these: with another label, or other boxes
  // SHA-256, in hexadecimal, of a text with a line for each record in the order of the database:
  // the SHA-256 of the record as protobuf writes it, two blanks, its key; what sha256sum prints of
  // files. So it does not depend on the kind of database. Empty where records are damaged.
  std::string checksum;
};

// Two records cannot have one key: an LMDB that has such is refused when it is opened.
//
// Reads and decodes every record on `threads` threads. Logs an error for each damaged record, with
// its key and the reason, and a warning for each repeated one; a hundred of either at most.
Verified verify_database(const Source& source, int threads, Log& log);

}  // namespace crema
