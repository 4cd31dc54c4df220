#include <algorithm>

#include "device/aligned.h"
#include "exchange/c/program.h"
#include "net/plan/arena.h"

namespace crema {

namespace {

// Values begin at multiples of so many elements of four bytes. assign_offsets() has an alignment of its
// own, so it gets one such piece for every kTogether elements.
constexpr int64_t kTogether = 4;

class MemoryPlanner {
 public:
  explicit MemoryPlanner(CProgram* program) : program_(*program) {}

  void run() {
    place_outputs();
    place_parts(&program_.inference.calls);
    if (program_.training) place_parts(&program_.training->routine.calls);
    place_over();
    lay_out();
  }

 private:
  struct Use {
    int first = -1, last = -1;  // calls
  };

  CValue& root(int value) { return program_.values[program_.root_of(value)]; }
  int64_t shift_of(int value) const {
    int64_t shift = 0;
    for (; program_.values[value].root >= 0; value = program_.values[value].root)
      shift += program_.values[value].shift;
    return shift;
  }

  // An output whose memory is all its own becomes the caller's; another one is copied at the end.
  void place_outputs() {
    for (int& output : program_.inference.outputs) {
      CValue& whole = root(output);
      if (whole.memory == CValue::Memory::arena && shift_of(output) == 0 &&
          whole.shape.count() == program_.values[output].shape.count()) {
        whole.memory = CValue::Memory::output;
        continue;
      }
      CValue copy = program_.values[output];
      copy.root = -1;
      copy.shift = 0;
      copy.memory = CValue::Memory::output;
      copy.name += "_result";
      program_.values.push_back(copy);
      add_copy(output, static_cast<int>(program_.values.size()) - 1);
      output = static_cast<int>(program_.values.size()) - 1;
    }
  }

  void add_copy(int from, int to) {
    CCall call;
    call.function = "memcpy";
    call.arguments.push_back({CArgument::Kind::value, to, "", true});
    call.arguments.push_back({CArgument::Kind::value, from, "", false});
    const CValue& value = program_.values[to];
    call.arguments.push_back(
        {CArgument::Kind::text, 0,
         std::to_string(value.shape.count()) + " * sizeof(" + c_name(value.type) + ")", false});
    call.comment = "A result that is also something else.";
    program_.inference.calls.push_back(call);
  }

  // Parts of a concatenation that are not copied but computed in place.
  void place_parts(std::vector<CCall>* calls) {
    std::vector<CCall> kept;
    for (CCall& call : *calls) {
      if (call.part >= 0 && takes_part(call)) continue;
      kept.push_back(std::move(call));
    }
    *calls = std::move(kept);
  }

  bool takes_part(const CCall& call) {
    const int part = program_.root_of(call.part);
    const int whole = program_.root_of(written_by(call));
    CValue& value = program_.values[part];
    if (part == whole || value.memory != CValue::Memory::arena ||
        value.type != program_.values[whole].type || shift_of(call.part) != 0 ||
        value.shape.count() != program_.values[call.part].shape.count())
      return false;
    value.root = whole;
    value.shift = call.part_shift + shift_of(written_by(call));
    return true;
  }

  static int written_by(const CCall& call) {
    for (const CArgument& argument : call.arguments)
      if (argument.written) return argument.index;
    return -1;
  }

  // Of inference and then of training: they share the arena, and no value but those that are kept.
  std::vector<const CCall*> all_calls() const {
    std::vector<const CCall*> all;
    for (const CCall& call : program_.inference.calls) all.push_back(&call);
    if (program_.training)
      for (const CCall& call : program_.training->routine.calls) all.push_back(&call);
    return all;
  }

  std::vector<Use> uses() const {
    std::vector<Use> uses(program_.values.size());
    const std::vector<const CCall*> calls = all_calls();
    for (size_t at = 0; at < calls.size(); ++at) {
      for (const CArgument& argument : calls[at]->arguments) {
        if (argument.kind != CArgument::Kind::value) continue;
        Use& use = uses[program_.root_of(argument.index)];
        if (use.first < 0) use.first = static_cast<int>(at);
        use.last = static_cast<int>(at);
      }
    }
    for (size_t id = 0; id < uses.size(); ++id)
      if (program_.values[id].kept) uses[id] = {0, static_cast<int>(calls.size())};
    return uses;
  }

  // Results in the memory of an operand that nothing reads later.
  void place_over() {
    std::vector<Use> used = uses();
    const std::vector<const CCall*> calls = all_calls();
    for (size_t at = 0; at < calls.size(); ++at) {
      const CCall& call = *calls[at];
      if (call.over < 0) continue;
      const int from = program_.root_of(call.over), to = program_.root_of(written_by(call));
      CValue& result = program_.values[to];
      const CValue& operand = program_.values[from];
      const int now = static_cast<int>(at);
      if (from == to || result.memory != CValue::Memory::arena ||
          operand.memory != CValue::Memory::arena || operand.type != result.type ||
          used[from].last != now || used[to].first != now || shift_of(call.over) != 0 ||
          shift_of(written_by(call)) != 0 || operand.shape.count() != result.shape.count())
        continue;
      result.root = from;
      used[from].last = used[to].last;
    }
  }

  void lay_out() {
    const std::vector<Use> used = uses();
    for (int part = 0; part < kArenaParts; ++part) {
      std::vector<Lifetime> pieces;
      std::vector<int> ids;
      for (size_t id = 0; id < program_.values.size(); ++id) {
        const CValue& value = program_.values[id];
        if (value.root >= 0 || value.memory != CValue::Memory::arena ||
            arena_part(value.type) != CArenaPart(part) || used[id].first < 0)
          continue;
        const int64_t together = kTogether * 4 / static_cast<int64_t>(c_size(value.type));
        const int64_t units = (value.shape.count() + together - 1) / together;
        pieces.push_back({units * aligned(1), used[id].first, used[id].last});
        ids.push_back(static_cast<int>(id));
      }
      const auto elements = [](size_t bytes) {
        return static_cast<int64_t>(bytes / aligned(1)) * kTogether;
      };
      program_.arena[part] = elements(assign_offsets(pieces));
      for (size_t i = 0; i < ids.size(); ++i)
        program_.values[ids[i]].offset = elements(pieces[i].offset);
    }
  }

  CProgram& program_;
};

}  // namespace

void plan_memory(CProgram* program) { MemoryPlanner(program).run(); }

}  // namespace crema
