#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <limits>

#include "fuzz/damage.h"

namespace crema::tests {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

void collect(pb::Message* message, std::vector<pb::Message*>& all) {
  all.push_back(message);
  const pb::Reflection* reflection = message->GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
      collect(reflection->MutableRepeatedMessage(message, field, i), all);
  }
}

int64_t odd_integer(Dice& dice) {
  static const std::vector<int64_t> small = {0, 1, 2, 3, 4, 5, 7, 8, 16, -1};
  static const std::vector<int64_t> odd = {-2,
                                           32,
                                           33,
                                           255,
                                           256,
                                           65536,
                                           1000000,
                                           INT32_MAX,
                                           INT32_MIN,
                                           int64_t{1} << 31,
                                           UINT32_MAX,
                                           int64_t{1} << 32,
                                           int64_t{1} << 44,
                                           INT64_MAX,
                                           INT64_MIN};
  return dice.pick(dice.one_in(3) ? odd : small);
}

double odd_real(Dice& dice) {
  static const std::vector<double> odd = {-0.0,
                                          0.5,
                                          1.5,
                                          -3,
                                          1e-45,
                                          1e-30,
                                          1e20,
                                          3e38,
                                          -3e38,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};
  return dice.one_in(2) ? static_cast<double>(odd_integer(dice)) : dice.pick(odd);
}

std::string odd_text(Dice& dice, const std::vector<std::string>& words) {
  if (dice.one_in(6)) return "";
  if (dice.one_in(20)) return std::string(dice.below(5000), 'y');
  if (dice.one_in(20)) return std::string("a\n\033\xff", 4);
  return words.empty() ? "x" : dice.pick(words);
}

// Sets a field, or adds to it.
void set(Dice& dice, pb::Message* m, const Field* f, const std::vector<std::string>& words,
         int depth) {
  const pb::Reflection* r = m->GetReflection();
  const bool add = f->is_repeated();
  const int held = add ? r->FieldSize(*m, f) : 0;
  const bool replace = held > 0 && !dice.one_in(3);
  const int at = replace ? static_cast<int>(dice.below(static_cast<size_t>(held))) : 0;
  switch (f->cpp_type()) {
#define CREMA_SET(Type, value)               \
  {                                          \
    const auto given = value;                \
    if (replace) {                           \
      r->SetRepeated##Type(m, f, at, given); \
    } else if (add) {                        \
      r->Add##Type(m, f, given);             \
    } else {                                 \
      r->Set##Type(m, f, given);             \
    }                                        \
    break;                                   \
  }
    case Field::CPPTYPE_INT32:
      CREMA_SET(Int32, static_cast<int32_t>(odd_integer(dice)))
    case Field::CPPTYPE_INT64:
      CREMA_SET(Int64, odd_integer(dice))
    case Field::CPPTYPE_UINT32:
      CREMA_SET(UInt32, static_cast<uint32_t>(odd_integer(dice)))
    case Field::CPPTYPE_UINT64:
      CREMA_SET(UInt64, static_cast<uint64_t>(odd_integer(dice)))
    case Field::CPPTYPE_FLOAT:
      CREMA_SET(Float, static_cast<float>(odd_real(dice)))
    case Field::CPPTYPE_DOUBLE:
      CREMA_SET(Double, odd_real(dice))
    case Field::CPPTYPE_BOOL:
      CREMA_SET(Bool, dice.one_in(2))
    case Field::CPPTYPE_STRING:
      CREMA_SET(String, odd_text(dice, words))
    case Field::CPPTYPE_ENUM:
      CREMA_SET(Enum, f->enum_type()->value(static_cast<int>(
                          dice.below(static_cast<size_t>(f->enum_type()->value_count())))))
#undef CREMA_SET
    case Field::CPPTYPE_MESSAGE: {
      pb::Message* inner = add ? r->AddMessage(m, f) : r->MutableMessage(m, f);
      const pb::Descriptor* type = inner->GetDescriptor();
      for (size_t i = dice.below(3); i > 0 && type->field_count() > 0 && depth < 3; --i)
        set(dice, inner,
            type->field(static_cast<int>(dice.below(static_cast<size_t>(type->field_count())))),
            words, depth + 1);
    }
  }
}

void change(Dice& dice, pb::Message* m, const std::vector<std::string>& words) {
  const pb::Descriptor* type = m->GetDescriptor();
  const pb::Reflection* r = m->GetReflection();
  std::vector<const Field*> held;
  r->ListFields(*m, &held);
  const size_t action = dice.below(10);
  if (held.empty() || action < 3) {
    if (type->field_count() == 0) return;
    return set(dice, m,
               type->field(static_cast<int>(dice.below(static_cast<size_t>(type->field_count())))),
               words, 0);
  }
  const Field* f = dice.pick(held);
  if (action < 7) return set(dice, m, f, words, 0);
  if (!f->is_repeated()) {
    if (action == 7) r->ClearField(m, f);
    return;
  }
  const int size = r->FieldSize(*m, f);
  const int at = static_cast<int>(dice.below(static_cast<size_t>(size)));
  if (action == 7) {
    r->SwapElements(m, f, at, static_cast<int>(dice.below(static_cast<size_t>(size))));
  } else if (action == 8 || f->cpp_type() != Field::CPPTYPE_MESSAGE) {
    r->SwapElements(m, f, at, size - 1);
    r->RemoveLast(m, f);
  } else {
    const std::unique_ptr<pb::Message> copy(r->GetRepeatedMessage(*m, f, at).New());
    copy->CopyFrom(r->GetRepeatedMessage(*m, f, at));
    r->AddMessage(m, f)->CopyFrom(*copy);
  }
}

// Fields in the bytes of a message, one after another; anything else ends them.
struct Piece {
  uint64_t key;
  std::string bytes;  // of a field of bytes: without their length
};

bool take_varint(const std::string& from, size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < from.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[(*at)++]);
    *value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::vector<Piece> pieces_of(const std::string& bytes, size_t* end) {
  std::vector<Piece> pieces;
  size_t at = *end = 0;
  uint64_t key, value;
  while (take_varint(bytes, &at, &key)) {
    const size_t begin = at;
    size_t size = 0;
    switch (key & 7) {
      case 0:
        if (!take_varint(bytes, &at, &value)) return pieces;
        pieces.push_back({key, bytes.substr(begin, at - begin)});
        *end = at;
        continue;
      case 1:
        size = 8;
        break;
      case 2:
        if (!take_varint(bytes, &at, &value) || value > bytes.size() - at) return pieces;
        size = value;
        break;
      case 5:
        size = 4;
        break;
      default:
        return pieces;
    }
    if (size > bytes.size() - at) return pieces;
    pieces.push_back({key, bytes.substr(at, size)});
    *end = at += size;
  }
  return pieces;
}

}  // namespace

void damage_message(Dice& dice, pb::Message& message, const std::vector<std::string>& words) {
  const size_t times = 1 + dice.below(4);
  for (size_t i = 0; i < times; ++i) {
    std::vector<pb::Message*> all;
    collect(&message, all);
    change(dice, dice.pick(all), words);
  }
}

void damage_wire(Dice& dice, std::string& bytes) {
  size_t end = 0;
  std::vector<Piece> pieces = pieces_of(bytes, &end);
  if (pieces.empty() || dice.one_in(12)) return damage_bytes(dice, bytes, bytes);
  const size_t at = dice.below(pieces.size());
  bool wrong_length = false;
  switch (dice.below(10)) {
    case 0:
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      pieces.push_back(pieces[at]);
      break;
    case 2:
      pieces[at].key = dice.one_in(2) ? pieces[at].key ^ (1 + dice.below(7))
                                      : 8 * (1 + dice.below(120)) + (pieces[at].key & 7);
      break;
    case 3:
      wrong_length = true;
      break;
    case 4:
      std::swap(pieces[at], pieces[dice.below(pieces.size())]);
      break;
    default:
      if ((pieces[at].key & 7) == 0) {
        pieces[at].bytes = varint(dice.one_in(2) ? dice.word() >> dice.below(64)
                                                 : static_cast<uint64_t>(odd_integer(dice)));
      } else if ((pieces[at].key & 7) == 2 && !dice.one_in(4)) {
        damage_wire(dice, pieces[at].bytes);
      } else {
        damage_bytes(dice, pieces[at].bytes, bytes);
      }
  }
  const std::string rest = bytes.substr(end);
  bytes.clear();
  for (size_t i = 0; i < pieces.size(); ++i) {
    bytes += varint(pieces[i].key);
    if ((pieces[i].key & 7) == 2)
      bytes +=
          varint(wrong_length && i == at ? dice.word() >> dice.below(64) : pieces[i].bytes.size());
    bytes += pieces[i].bytes;
  }
  bytes += rest;
}

}  // namespace crema::tests
