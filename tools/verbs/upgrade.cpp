// `crema upgrade_net_proto_text|upgrade_net_proto_binary|upgrade_solver_proto_text IN OUT`:
// rewrites files of older generations of the format in today's.
#include "net/prototxt/upgrade.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include "base/files.h"
#include "net/preparation.h"
#include "net/prototxt/prototxt.h"
#include "net/prototxt/prototxt_parse.h"
#include "net/prototxt/upgrade_strip.h"
#include "tools/verb.h"

namespace crema {

namespace {

void say_what_changed(Log& log, bool changed, const std::vector<Note>& notes,
                      const std::string& path) {
  write_notes(log, notes);
  // Not a mistake, but Caffe logs it as one, and scripts look for it.
  if (!changed) log.error("File already in latest proto format: " + path);
}

void write_text(const google::protobuf::Message& message, const std::string& path,
                const std::string& comments = "") {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  write_file_atomically(path, comments + text);
}

int upgrade_net_text(const VerbCall& call) {
  const std::string &in = call.arguments[0], &out = call.arguments[1];
  const NetFile file = read_net_file(in);
  say_what_changed(call.log, file.upgrade.changed, file.upgrade.notes, in);
  write_text(file.net, out, text_of(file.preparation, folder_of(out)));
  call.log.info("Wrote upgraded NetParameter text proto to " + out);
  return 0;
}

// C3D's first files: the fifth field of a blob is its width.
bool is_of_clips(const NetParameter& net) {
  for (const V1LayerParameter& layer : net.layers()) {
    for (const BlobProto& blob : layer.blobs()) {
      const auto& others = blob.GetReflection()->GetUnknownFields(blob);
      for (int i = 0; i < others.field_count(); ++i) {
        if (others.field(i).number() == BlobProto::kDataFieldNumber &&
            others.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
          return true;
      }
    }
  }
  return false;
}

int upgrade_net_binary(const VerbCall& call) {
  const std::string &in = call.arguments[0], &out = call.arguments[1];
  NetParameter net;
  require(net.ParseFromString(read_file(in)), in,
          ": expected a net in binary form (.caffemodel), but it is damaged or something else");
  require(!is_of_clips(net), in,
          ": C3D's first files number their fields differently, so only their weights can be read; "
          "-weights takes the file as it is");
  const Upgrade upgrade = upgrade_net(&net, in);
  say_what_changed(call.log, upgrade.changed, upgrade.notes, in);
  strip_fork_fields(&net);
  write_file_atomically(out, net.SerializeAsString());
  call.log.info("Wrote upgraded NetParameter binary proto to " + out);
  return 0;
}

int upgrade_solver_text(const VerbCall& call) {
  const std::string &in = call.arguments[0], &out = call.arguments[1];
  SolverParameter solver;
  parse_text(read_text(in), in, &solver);
  const Upgrade upgrade = upgrade_solver(&solver, in);
  say_what_changed(call.log, upgrade.changed, upgrade.notes, in);
  write_text(solver, out);
  call.log.info("Wrote upgraded SolverParameter text proto to " + out);
  return 0;
}

REGISTER_VERB(upgrade_net_proto_text,
              {.summary = "converts an old net.prototxt to the current format",
               .usage = "IN OUT",
               .example = "crema upgrade_net_proto_text old.prototxt new.prototxt",
               .min_arguments = 2,
               .max_arguments = 2,
               .run = upgrade_net_text});
REGISTER_VERB(upgrade_net_proto_binary,
              {.summary = "converts an old .caffemodel to the current format",
               .usage = "IN OUT",
               .example = "crema upgrade_net_proto_binary old.caffemodel new.caffemodel",
               .min_arguments = 2,
               .max_arguments = 2,
               .run = upgrade_net_binary});
REGISTER_VERB(upgrade_solver_proto_text,
              {.summary = "converts an old solver.prototxt to the current format",
               .usage = "IN OUT",
               .example = "crema upgrade_solver_proto_text old.prototxt new.prototxt",
               .min_arguments = 2,
               .max_arguments = 2,
               .run = upgrade_solver_text});

}  // namespace

}  // namespace crema
