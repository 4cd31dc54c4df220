#include "data/databases/hdf5/hdf5_structure.h"

#include <algorithm>
#include <set>

#include "data/databases/hdf5/hdf5_groups.h"
#include "data/databases/hdf5/hdf5_messages.h"
#include "data/databases/hdf5/hdf5_ranges.h"

namespace crema {
namespace {

struct Message {
  enum Kind : uint64_t {
    dataspace = 1,
    link_info = 2,
    datatype = 3,
    old_fill_value = 4,
    fill_value = 5,
    link = 6,
    external_files = 7,
    layout = 8,
    group_info = 10,
    filters = 11,
    attribute = 12,
    comment = 13,
    old_time = 14,
    continuation = 16,
    symbol_table = 17,
    time = 18,
    tree_nodes = 19,
    attribute_info = 21,
    references = 22
  };
};

class Walk {
 public:
  explicit Walk(const std::string& path) : ranges_(path) {}

  void run() {
    const Root root = superblock();
    if (root.tree != kHdf5Nowhere) groups_.add(root.tree, root.heap);
    objects_.push_back(root.object);
    for (groups_.walk(); !objects_.empty(); groups_.walk()) {
      const uint64_t next = objects_.back();
      objects_.pop_back();
      object(next);
    }
    ranges_.check();
  }

 private:
  struct Root {
    uint64_t object = 0, tree = kHdf5Nowhere, heap = kHdf5Nowhere;
  };
  // The contents of an object's messages.
  struct Object {
    Hdf5Messages messages;
    std::vector<std::pair<uint64_t, uint64_t>> more;  // continuations: address and bytes
    uint64_t order = 0;                               // bytes of creation order in each message
    bool second_form = false;
    bool extension = false;  // of the superblock
    std::set<uint64_t> kinds;
  };

  void need_room(const Hdf5Fields& of) const {
    const Hdf5Ranges::Room& room = ranges_.room;
    of.expect(room.names > 0 && room.groups > 0 && room.chunks > 0, "has nodes without room");
  }

  Root superblock();
  void object(uint64_t address);
  void header(uint64_t address, Object& object);
  void messages(Hdf5Fields fields, Object& object);
  void message(uint64_t kind, Hdf5Fields& fields, Object& object);
  void link(Hdf5Fields& fields);
  void dataset(uint64_t address, const Hdf5Messages& messages);
  // `level`: the required level; negative: any.
  // The node and those below it; level -1: of the root, any. chunk: its extents, the value's size last.
  void chunk_node(uint64_t address, int level, const std::vector<uint64_t>& chunk, bool filtered);

  Hdf5Ranges ranges_;
  std::vector<uint64_t> objects_;  // still to be visited
  Hdf5Groups groups_{ranges_, objects_};
  uint64_t extension_ = kHdf5Nowhere;  // of the superblock
};

Walk::Root Walk::superblock() {
  constexpr uint64_t kLongest = 100;
  Hdf5Fields fields = ranges_.look("its superblock", 0, std::min(kLongest, ranges_.end()));
  fields.skip(8);
  const uint64_t version = fields.number(1);
  fields.expect(version <= 3, "is of version ", version);
  if (version < 2) fields.skip(4);
  const uint64_t address_size = fields.number(1), length_size = fields.number(1);
  fields.expect(address_size == 8 && length_size == 8, "has addresses of ", address_size,
                " and lengths of ", length_size, " bytes, but only 8 is supported");
  fields.skip(1);
  Root root;
  uint64_t base = 0, file_end = 0;
  if (version < 2) {
    ranges_.room.names = fields.number(2);
    ranges_.room.groups = fields.number(2);
    fields.skip(4);
    if (version == 1) {
      ranges_.room.chunks = fields.number(2);
      fields.skip(2);
    }
    base = fields.address();
    fields.skip(8);  // free space
    file_end = fields.address();
    const uint64_t driver = fields.address();
    fields.expect(driver == kHdf5Nowhere, "names a driver, which is not supported");
    fields.skip(8);
    root.object = fields.address();
    const uint64_t cached = fields.number(4);
    fields.skip(4);
    if (cached == 1) {
      root.tree = fields.address();
      root.heap = fields.address();
    }
  } else {
    base = fields.address();
    const uint64_t extension = fields.address();
    file_end = fields.address();
    root.object = fields.address();
    extension_ = extension;
  }
  need_room(fields);
  fields.expect(file_end >= base && file_end - base <= ranges_.end(),
                "says that the file ends at byte ", file_end, ", but it ends at byte ",
                ranges_.end());
  ranges_.end_at(file_end - base);
  ranges_.claim("its superblock", 0, fields.position());
  if (extension_ != kHdf5Nowhere) object(extension_);
  return root;
}

void Walk::object(uint64_t address) {
  if (!ranges_.first_visit(address)) return;
  Object object;
  object.extension = address == extension_;
  header(address, object);
  while (!object.more.empty()) {
    const auto [at, size] = object.more.back();
    object.more.pop_back();
    Hdf5Fields fields = ranges_.take("the continuation of an object's header", at, size);
    constexpr uint64_t kChecksum = 4;
    if (object.second_form) {
      fields.signature("OCHK");
      fields.expect(fields.left() >= kChecksum, "has no checksum");
      messages(fields.part(fields.left() - kChecksum, "a block of messages"), object);
    } else {
      messages(std::move(fields), object);
    }
  }
  dataset(address, object.messages);
}

void Walk::header(uint64_t address, Object& object) {
  const std::string what = "an object's header";
  constexpr uint64_t kFirst = 16, kMax = 40;
  ranges_.hold(what, address, kFirst);
  Hdf5Fields fields = ranges_.look(what, address, std::min(kMax, ranges_.end() - address));
  if (fields.number(1) == 1) {
    fields.skip(7);
    const uint64_t size = fields.number(4);
    ranges_.claim(what, address, kFirst);
    messages(ranges_.take("messages of an object", address + kFirst, size), object);
    return;
  }
  fields = ranges_.look(what, address, std::min(kMax, ranges_.end() - address));
  fields.signature("OHDR");
  const uint64_t version = fields.number(1), flags = fields.number(1);
  fields.expect(version == 2, "is of version ", version);
  object.second_form = true;
  object.order = (flags & 4) != 0 ? 2 : 0;
  if ((flags & 0x20) != 0) fields.skip(16);  // timestamps
  if ((flags & 0x10) != 0) fields.skip(4);   // when attributes become dense
  const uint64_t size = fields.number(size_t{1} << (flags & 3));
  const uint64_t begin = fields.position() - address;
  ranges_.claim(what, address, begin);
  messages(ranges_.take("messages of an object", address + begin, size), object);
}

void Walk::messages(Hdf5Fields fields, Object& object) {
  const size_t head = object.second_form ? 4 + object.order : 8;
  // The second form may end in a gap that is too short for a message.
  while (fields.left() >= (object.second_form ? head : 1)) {
    const uint64_t kind = fields.number(object.second_form ? 1 : 2), size = fields.number(2);
    constexpr uint64_t kShared = 2;
    const uint64_t flags = fields.number(1);
    fields.skip(head - (object.second_form ? 4 : 5));
    Hdf5Fields body = fields.part(size, "a message of an object");
    if ((flags & kShared) == 0) {
      message(kind, body, object);
      continue;
    }
    const uint64_t version = body.number(1), type = body.number(1);
    body.expect(version >= 1 && version <= 3, "is shared in a form of version ", version);
    if (version == 1) body.skip(6);
    if (version == 1 || type != 1) objects_.push_back(body.address());
    if (kind == Message::datatype) object.messages.type_size.reset();
  }
}

void Walk::message(uint64_t kind, Hdf5Fields& fields, Object& object) {
  constexpr uint64_t kSingle = 1 << Message::dataspace | 1 << Message::datatype |
                               1 << Message::old_fill_value | 1 << Message::fill_value |
                               1 << Message::layout | 1 << Message::filters |
                               1 << Message::symbol_table;
  if (kind < 64 && (kSingle >> kind & 1) != 0)
    fields.expect(object.kinds.insert(kind).second, "is the second of kind ", kind);
  switch (kind) {
    case Message::dataspace:
      return read_dataspace(fields, object.messages);
    case Message::datatype:
      return read_datatype(fields, object.messages);
    case Message::old_fill_value:
      return read_old_fill_value(fields, object.messages);
    case Message::fill_value:
      return read_fill_value(fields, object.messages);
    case Message::link:
      return link(fields);
    case Message::external_files:
      return groups_.external_files(fields);
    case Message::layout:
      return read_layout(fields, object.messages);
    case Message::filters:
      return read_filters(fields, object.messages);
    case Message::attribute:
      return read_attribute(fields);
    case Message::comment:
      fields.skip_text();
      return;
    case Message::continuation: {
      const uint64_t address = fields.address(), size = fields.number(8);
      object.more.push_back({address, size});
      return;
    }
    case Message::symbol_table: {
      const uint64_t tree = fields.address(), heap = fields.address();
      return groups_.add(tree, heap);
    }
    case Message::tree_nodes:
      if (!object.extension) return;
      fields.skip(1);
      ranges_.room.chunks = fields.number(2);
      ranges_.room.groups = fields.number(2);
      ranges_.room.names = fields.number(2);
      return need_room(fields);
    case Message::link_info:
    case Message::attribute_info: {
      fields.skip(1);
      const uint64_t flags = fields.number(1);
      const uint64_t counter = kind == Message::link_info ? 8 : 2;
      fields.skip(((flags & 1) != 0 ? counter : 0) + 16 + ((flags & 2) != 0 ? 8 : 0));
      return;
    }
    case Message::group_info: {
      fields.skip(1);
      const uint64_t flags = fields.number(1);
      fields.skip(((flags & 1) != 0 ? 4 : 0) + ((flags & 2) != 0 ? 4 : 0));
      return;
    }
    case Message::old_time:
      return fields.skip(16);
    case Message::time:
      return fields.skip(8);
    case Message::references:
      return fields.skip(5);
    default:
      return;  // not needed by a reader
  }
}

void Walk::link(Hdf5Fields& fields) {
  const uint64_t version = fields.number(1), flags = fields.number(1);
  fields.expect(version == 1, "is a link of version ", version);
  enum Kind : uint64_t { hard, soft };
  const uint64_t kind = (flags & 8) != 0 ? fields.number(1) : hard;
  fields.skip(((flags & 4) != 0 ? 8 : 0) + ((flags & 0x10) != 0 ? 1 : 0));
  const uint64_t name = fields.number(size_t{1} << (flags & 3));
  fields.expect(name > 0, "is a link without a name");
  fields.skip(name);
  if (kind == hard)
    objects_.push_back(fields.address());
  else
    fields.skip(fields.number(2));
}

void Walk::dataset(uint64_t address, const Hdf5Messages& messages) {
  if (!messages.layout) return;
  using Layout = Hdf5Messages::Layout;
  const Layout& layout = *messages.layout;
  const Hdf5Fields at("a dataset", address, {});
  const std::optional<uint64_t> bytes = messages.bytes();
  at.expect(!messages.fill_size || !messages.type_size || messages.fill_size == messages.type_size,
            "has a fill value of ", messages.fill_size.value_or(0), " bytes for values of ",
            messages.type_size.value_or(0));
  if (!bytes || !messages.extents || !messages.type_size) return;
  if (layout.kind == Layout::Kind::chunked) {
    at.expect(layout.chunk.size() == messages.extents->size() + 1 &&
                  layout.chunk.back() == *messages.type_size,
              "has chunks that are not of its axes and its type");
    if (layout.tree && layout.address != kHdf5Nowhere)
      chunk_node(layout.address, -1, layout.chunk, messages.filtered);
    return;
  }
  if (layout.kind == Layout::Kind::other || layout.address == kHdf5Nowhere) {
    at.expect(layout.kind != Layout::Kind::compact || layout.size.value_or(0) >= *bytes, "claims ",
              *bytes, " bytes of values and holds ", layout.size.value_or(0));
    return;
  }
  const uint64_t stored = layout.size.value_or(*bytes);
  at.expect(stored >= *bytes, "claims ", *bytes, " bytes of values and holds ", stored);
  ranges_.claim("the values of a dataset", layout.address, stored);
}

void Walk::chunk_node(uint64_t address, int level, const std::vector<uint64_t>& chunk,
                      bool filtered) {
  const uint64_t key = 8 + 8 * chunk.size();
  const std::string what = "a node of chunks";
  const Hdf5Fields at(what, address, {});
  at.expect(ranges_.first_visit(address), "appears twice in its tree");
  Hdf5Fields fields = ranges_.take(what, address, 24 + (key + 8) * 2 * ranges_.room.chunks + key);
  fields.signature("TREE");
  const uint64_t kind = fields.number(1), here = fields.number(1), entries = fields.number(2);
  fields.expect(kind == 1 && entries <= 2 * ranges_.room.chunks &&
                    (level < 0 || here == static_cast<uint64_t>(level)),
                "is of kind ", kind, " and level ", here, " with ", entries, " entries");
  fields.skip(16);
  uint64_t whole = 1;
  for (const uint64_t extent : chunk) whole *= extent;
  for (uint64_t entry = 0; entry < entries; ++entry) {
    const uint64_t bytes = fields.number(4);
    fields.skip(4);  // mask of skipped filters
    for (const uint64_t extent : chunk) {
      const uint64_t at = fields.number(8);
      fields.expect(at % extent == 0, "has a chunk from ", at, " on, where chunks have ", extent);
    }
    const uint64_t child = fields.address();
    if (here > 0) {
      chunk_node(child, static_cast<int>(here) - 1, chunk, filtered);
      continue;
    }
    fields.expect(filtered || bytes == whole, "has a chunk of ", bytes, " bytes, not ", whole);
    ranges_.claim("a chunk", child, bytes);
  }
}

}  // namespace

void check_hdf5_structure(const std::string& path) {
  try {
    Walk(path).run();
  } catch (const Hdf5Damage& damage) {
    fail(path, ": is not an HDF5 file, or it is damaged or cut short: ", damage.what());
  }
}

}  // namespace crema
