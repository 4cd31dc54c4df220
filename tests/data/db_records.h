// Small databases for the tests of `crema db`.
#pragma once

#include <functional>

#include "data/databases/database_writer.h"
#include "data/databases/find_database.h"
#include "fixtures.h"

namespace crema::tests {

// A grey picture of 2 x 2 pixels, different for each number.
inline Datum numbered_datum(int number, int label) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(2);
  datum.set_data(std::string(3, static_cast<char>(number)) + '\xFF');
  datum.set_label(label);
  return datum;
}

// This many records with keys from "PREFIX00000000", and the labels 0, 1, 2, 0, ...
inline std::string write_numbered(const std::string& path, int count,
                                  Backend backend = DataParameter::LMDB,
                                  const std::string& prefix = "", int first = 0) {
  const auto writer = create_database(path, backend);
  for (int i = 0; i < count; ++i)
    writer->put(prefix + numbered_key(i, 8), numbered_datum(first + i, i % 3));
  writer->finish();
  return path;
}

// "KEY:first byte:label " of each record, in order.
inline std::string listed(const std::string& path) {
  const FoundDatabase database = find_database(path);
  std::string text;
  for (int64_t i = 0; i < database.source->size(); ++i) {
    Datum datum;
    database.source->read(i, datum);
    const int value = datum.data().empty() ? static_cast<int>(datum.float_data(0))
                                           : static_cast<uint8_t>(datum.data()[0]);
    text += cat(i > 0 ? " " : "", database.source->key(i), ":", value, ":", datum.label());
  }
  return text;
}

}  // namespace crema::tests
