#include "data/databases/hdf5/hdf5_groups.h"

#include <algorithm>

namespace crema {

void Hdf5Groups::add(uint64_t tree, uint64_t heap) {
  const auto [known, first] = heaps_.insert({tree, heap});
  const Hdf5Fields at("a group's tree", tree, {});
  at.expect(known->second == heap, "has two heaps of names");
  if (first) ahead_.push_back(tree);
}

void Hdf5Groups::walk() {
  while (!ahead_.empty()) {
    const uint64_t tree = ahead_.back();
    ahead_.pop_back();
    node(tree, -1, heap(heaps_.at(tree)));
  }
}

Hdf5Groups::Names Hdf5Groups::heap(uint64_t address) {
  constexpr uint64_t kHead = 32, kNone = 1, kPiece = 16;
  const std::string what = "a heap of names";
  Hdf5Fields fields = ranges_.take(what, address, kHead);
  fields.signature("HEAP");
  fields.skip(4);
  const uint64_t bytes = fields.number(8);
  uint64_t free = fields.number(8);
  const uint64_t data = fields.address();
  fields.expect(bytes > 0, "is empty");
  const Names names = ranges_.take(what, data, bytes).bytes();
  for (uint64_t pieces = bytes / kPiece; free != kNone; --pieces) {
    fields.expect(pieces > 0 && free <= bytes && bytes - free >= kPiece && free % 8 == 0,
                  "has free space from byte ", free, " of ", bytes, " on");
    Hdf5Fields piece(what, data + free, {names.begin() + static_cast<int64_t>(free), names.end()});
    const uint64_t next = piece.number(8), size = piece.number(8);
    fields.expect(size >= kPiece && size <= bytes - free, "has ", size, " free bytes from byte ",
                  free, " of ", bytes, " on");
    free = next;
  }
  return names;
}

void Hdf5Groups::check_name(const Hdf5Fields& of, uint64_t at, const Names& names) {
  const bool inside = at < names.size();
  const auto begin = names.begin() + static_cast<int64_t>(inside ? at : 0);
  of.expect(inside && std::find(begin, names.end(), 0) != names.end(), "has a name at byte ", at,
            " of ", names.size());
}

void Hdf5Groups::node(uint64_t address, int level, const Names& names) {
  const std::string what = "a node of a group";
  Hdf5Fields fields = ranges_.take(what, address, 24 + 16 * 2 * ranges_.room.groups + 8);
  fields.signature("TREE");
  const uint64_t kind = fields.number(1), here = fields.number(1), entries = fields.number(2);
  fields.expect(kind == 0 && entries <= 2 * ranges_.room.groups &&
                    (level < 0 || here == static_cast<uint64_t>(level)),
                "is of kind ", kind, " and level ", here, " with ", entries, " entries");
  fields.skip(16);  // sibling nodes
  for (uint64_t entry = 0; entry <= entries; ++entry) {
    const uint64_t name = fields.number(8);
    fields.expect(name < names.size(), "has a name at byte ", name, " of ", names.size());
    if (entry == entries) break;
    const uint64_t child = fields.address();
    fields.expect(ranges_.first_visit(child), "leads to byte ", child, ", as another does");
    if (here > 0)
      node(child, static_cast<int>(here) - 1, names);
    else
      list(child, names);
  }
}

void Hdf5Groups::list(uint64_t address, const Names& names) {
  Hdf5Fields fields = ranges_.take("a list of names", address, 8 + 2 * ranges_.room.names * 40);
  fields.signature("SNOD");
  fields.skip(2);
  const uint64_t count = fields.number(2);
  fields.expect(count <= 2 * ranges_.room.names, "has ", count, " names");
  enum Cache : uint64_t { none, is_group, is_link };
  for (uint64_t symbol = 0; symbol < count; ++symbol) {
    check_name(fields, fields.number(8), names);
    const uint64_t object = fields.address();
    const uint64_t cached = fields.number(4);
    fields.skip(4);
    Hdf5Fields scratch = fields.part(16, "an entry of a list of names");
    fields.expect(cached <= is_link, "has an entry of kind ", cached);
    if (cached == is_link) {
      check_name(fields, scratch.number(4), names);
      continue;
    }
    if (cached == is_group) {
      const uint64_t tree = scratch.address();
      add(tree, scratch.address());
    }
    objects_.push_back(object);
  }
}

void Hdf5Groups::external_files(Hdf5Fields& fields) {
  fields.skip(4);
  const uint64_t room = fields.number(2), files = fields.number(2);
  fields.expect(files <= room, "has ", files, " entries, and room for ", room);
  const Names names = heap(fields.address());
  for (uint64_t file = 0; file < files; ++file) {
    check_name(fields, fields.number(8), names);
    fields.skip(16);
  }
}

}  // namespace crema
