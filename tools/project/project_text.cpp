#include <google/protobuf/text_format.h>

#include <algorithm>

#include "base/error.h"
#include "tools/project/project.h"

namespace crema {

namespace {

struct Explained {
  const char* field;
  const char* comment;
};
// Fields in the order of the file. Those that are not named here follow without a comment.
constexpr Explained order[] = {
    {"net", "The net, for training and for testing."},
    {"test_epoch", "Each test reads every sample for testing once, after so many iterations."},
    {"test_interval", ""},
    {"eval_type", ""},
    {"type", "The update rule."},
    {"base_lr", "The learning rate, and how it changes until max_iter."},
    {"lr_policy", ""},
    {"max_iter", "Longer training is the first thing to try: the rate follows."},
    {"momentum", ""},
    {"weight_decay", ""},
    {"display", "Iterations between lines of the log, and between snapshots."},
    {"snapshot", ""},
    {"snapshot_prefix", ""},
};

void append_field(const google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor* field, std::string* text) {
  const auto* reflection = message.GetReflection();
  const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(message, field,
                                                          field->is_repeated() ? i : -1, &value);
    const bool block = field->cpp_type() == field->CPPTYPE_MESSAGE;
    *text +=
        block ? cat(field->name(), " { ", value, " }\n") : cat(field->name(), ": ", value, "\n");
  }
}

}  // namespace

std::string solver_text(const SolverParameter& solver, const std::string& heading) {
  std::string text = heading;
  const auto* type = solver.GetDescriptor();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  solver.GetReflection()->ListFields(solver, &fields);
  const auto take = [&](const std::string& name) {
    const auto at = std::find(fields.begin(), fields.end(), type->FindFieldByName(name));
    if (at == fields.end()) return false;
    fields.erase(at);
    return true;
  };
  for (const Explained& row : order) {
    if (!take(row.field)) continue;
    if (*row.comment) text += cat("# ", row.comment, "\n");
    append_field(solver, type->FindFieldByName(row.field), &text);
  }
  for (const auto* field : fields) append_field(solver, field, &text);
  return text;
}

std::string page_text(const ProjectPage& page, const Task& task,
                      const std::vector<std::string>& survey,
                      const std::vector<std::string>& decisions) {
  std::string text = cat("# ", page.name, "\n\nMade by `", page.command, "`.\n\n");
  if (!page.result.empty())
    text += cat("**Reached: ", page.result, "** (`", page.weights, "`).\n\n");
  text += cat(
      "Run these in this folder, with `crema` in the PATH:\n\n    crema train -solver "
      "solver.prototxt",
      page.flags, " -run auto\n    weights=", page.weights,
      "\n    crema test -model net.prototxt -weights $weights -epoch\n    ", task.use(),
      "    crema report ", page.run, "\n\n",
      "Each training gets a folder of its own, `runs/NAME-1`, `runs/NAME-2`, ..., with its log, "
      "its solver and net, curves and\n"
      "snapshots. To change something, edit `net.prototxt` and `solver.prototxt`, and train again; "
      "`crema check -solver\n"
      "solver.prototxt` finds mistakes, `crema sweep` tries several values.\n\n## The data\n\n");
  for (const std::string& line : survey)
    text += starts_with(line, "  ") ? line + "\n" : "- " + line + "\n";
  text += "\n## What was decided, and why\n\n";
  for (const std::string& line : decisions) text += "- " + line + "\n";
  return text;
}

}  // namespace crema
