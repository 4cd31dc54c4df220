// Checks of sources that belong together (net/sources/companions.h): whether record N of one stays with record
// N of the other.
#include <algorithm>
#include <map>
#include <set>

#include "layers/layer_facts.h"
#include "net/check/checks.h"
#include "net/sources/companions.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The message that says which records a source reads, and the name of its field.
std::pair<const Message*, std::string> reading_of(const LayerParameter& layer) {
  const auto* reflection = layer.GetReflection();
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
        !reflection->HasField(layer, field))
      continue;
    if (field->message_type()->FindFieldByName("batch_size") &&
        field->message_type()->FindFieldByName("source"))
      return {&reflection->GetMessage(layer, field), std::string(field->name())};
  }
  return {nullptr, ""};
}

// Whether the net has recurrent layers. Their first axis is time, so one source may have a batch of
// time steps and another a batch of sequences.
bool has_time(const CheckedNet& net) {
  for (int i = 0; i < net.layers(); ++i)
    if (facts_of(net.layer(i).type()).kind == LayerKind::recurrent) return true;
  return false;
}

// The value of a number or bool; 0 if the message has no such field.
int64_t number_in(const Message* message, const char* name) {
  const FieldDescriptor* field =
      message ? message->GetDescriptor()->FindFieldByName(name) : nullptr;
  if (!field || field->is_repeated()) return 0;
  const auto* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(*message, field) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(*message, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(*message, field);
    default:
      return 0;
  }
}

// Settings that move pixels: fields of transform_param, and sizes of the list's images.
std::map<std::string, std::string> geometry_of(const LayerParameter& layer) {
  static const char* const fields[] = {"mirror",
                                       "crop_size",
                                       "crop_h",
                                       "crop_w",
                                       "crop_height",
                                       "crop_width",
                                       "augment",
                                       "pad",
                                       "resize_param",
                                       "expand_param",
                                       "random_resize_param",
                                       "random_aspect_ratio_param",
                                       "multi_scale",
                                       "mirror_alternates"};
  std::map<std::string, std::string> geometry;
  const TransformationParameter& transform = layer.transform_param();
  const auto* reflection = transform.GetReflection();
  for (const char* name : fields) {
    const FieldDescriptor* field = TransformationParameter::descriptor()->FindFieldByName(name);
    if (!field || !reflection->HasField(transform, field)) continue;
    geometry[name] = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
                         ? reflection->GetMessage(transform, field).ShortDebugString()
                         : cat(number_in(&transform, name));
    if (geometry[name] == "0") geometry.erase(name);
  }
  return geometry;
}

// "00000012_dir/cat.jpg" -> "cat": the common part of the names of an image and its label image.
std::string stem_of(const std::string& name) {
  std::string stem = name.substr(name.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  const size_t digits = stem.find_first_not_of("0123456789");
  if (digits == 8 && stem[digits] == '_') stem = stem.substr(digits + 1);
  return stem;
}

struct Pair {
  const CheckedNet& net;
  int first, second, reader;
  const SourceFacts* a;  // null: not known
  const SourceFacts* b;
  Findings* findings;

  const LayerParameter& one() const { return net.layer(first); }
  const LayerParameter& other() const { return net.layer(second); }

  template <typename... Parts>
  void say(Severity severity, const char* field, const Parts&... parts) const {
    const std::string holder = reading_of(other()).second;
    add(findings, severity, net.where(second, *field ? cat(holder, ".", field) : holder),
        "layers \"", one().name(), "\" and \"", other().name(), "\" belong together, as \"",
        net.layer(reader).name(), "\" reads both, but ", parts...);
  }

  void check_numbers() const {
    const Message* const of_one = reading_of(one()).first;
    const Message* const of_other = reading_of(other()).first;
    if (!of_one || !of_other) return;
    const auto differs = [&](const char* field, const char* consequence, const char* remedy) {
      const int64_t x = number_in(of_one, field), y = number_in(of_other, field);
      if (x == y) return;
      say(Severity::error, field, field, " is ", x, " and ", y, ": ", consequence, "; ", remedy);
    };
    if (!has_time(net))
      differs("batch_size", "their records move apart with each batch", "give both the same");
    differs("shuffle", "one has another order than the other",
            "give both the same: companions are shuffled alike");
    differs("rand_skip", "they begin at different records",
            "give both the same: companions skip alike");
    if (!net.training()) return;
    const auto balances = [](const Message* message) {
      return number_in(message, "balance") != 0 || number_in(message, "balance_class") != 0;
    };
    if (balances(of_one) || balances(of_other))
      say(Severity::error, "balance",
          "balance draws the records of one by their classes, which the "
          "other does not have: leave it out, or put images and labels into one source");
    const bool hdf5 = one().type() == "HDF5Data", other_hdf5 = other().type() == "HDF5Data";
    if (number_in(of_one, "shuffle") != 0 && number_in(of_other, "shuffle") != 0 &&
        (hdf5 || other_hdf5))
      say(Severity::error, "shuffle",
          "HDF5Data shuffles by the blocks of its files, so that the "
          "orders differ: leave shuffle out and shuffle when the files are made, or put both "
          "datasets into one file");
  }

  void check_records() const {
    if (!a || !b) return;
    if (a->records > 0 && b->records > 0 && a->records != b->records && !has_time(net))
      say(Severity::error, "source", "they have ", a->records, " and ", b->records,
          " records: from the end of the shorter one on, records meet those of others; make both "
          "of the same list");
    for (size_t i = 0; i < a->names.size() && i < b->names.size(); ++i) {
      const std::string x = stem_of(a->names[i]), y = stem_of(b->names[i]);
      if (x == y) continue;
      const bool elsewhere =
          std::any_of(b->names.begin(), b->names.end(),
                      [&](const std::string& name) { return stem_of(name) == x; });
      if (!elsewhere) return;  // the names follow different rules
      return say(Severity::error, "source", "record ", i, " is ", a->names[i], " in one and ",
                 b->names[i],
                 " in the other: they are in different orders; make both of the same "
                 "list, without -shuffle or with the same order");
    }
  }

  void check_geometry() const {
    // A vector of labels is not moved with the image.
    if ((a && !a->spatial) || (b && !b->spatial)) return;
    auto x = geometry_of(one()), y = geometry_of(other());
    // MatRead has features of whole images. DeepLab's crop_size is larger than its images and only
    // pads them.
    if (one().type() == "MatRead" || other().type() == "MatRead") {
      for (const char* name : {"crop_size", "crop_h", "crop_w", "crop_height", "crop_width"}) {
        x.erase(name);
        y.erase(name);
      }
    }
    for (const auto& fields : {x, y}) {
      for (const auto& [name, value] : fields) {
        const auto in_x = x.find(name), in_y = y.find(name);
        if (in_x != x.end() && in_y != y.end() && in_x->second == in_y->second) continue;
        const auto text = [&](auto at, const auto& all) {
          return at == all.end() ? std::string("not given") : at->second;
        };
        return add(findings, Severity::warning, net.where(second, "transform_param"), "layers \"",
                   one().name(), "\" and \"", other().name(), "\" belong together, as \"",
                   net.layer(reader).name(), "\" reads both, but transform_param.", name, " is ",
                   text(in_x, x), " in one and ", text(in_y, y),
                   " in the other: pixels of one no longer lie on those of the other; give both "
                   "the same: companions are cropped and mirrored alike");
      }
    }
  }
};

}  // namespace

void check_in_step(const CheckedNet& net, const std::vector<std::optional<SourceFacts>>& facts,
                   Findings* findings) {
  for (const Companions& pair : find_companions(net.net())) {
    const auto known = [&](int layer) { return facts[layer] ? &*facts[layer] : nullptr; };
    const Pair both{
        net, pair.first, pair.second, pair.reader, known(pair.first), known(pair.second), findings};
    both.check_numbers();
    both.check_records();
    both.check_geometry();
  }
}

}  // namespace crema
