#include "tools/exchange/check_target.h"

#include "exchange/caffe/export.h"
#include "tools/classify/deployed_model.h"
#include "tools/flags/net_flags.h"

namespace crema {

Findings findings_of_target(ProgramLog& log, const TargetFlags& flags) {
  const Dialect& dialect = find_dialect(flags.target, "-target");
  Context context(Device::cpu);
  context.set_log(log.library());
  NetInput input = read_net(log, flags, TEST);
  const DeployedNet deployed = deploy_model(
      log, DeployFlags::without<"labels", "resize", "mean", "scale", "rgb">(flags), input, 0);
  input.options.where = [&deployed, where = input.options.where](int i) {
    return where(deployed.origins[i]);
  };
  input.options.keep_blobs = input.options.row_major = true;
  input.options.fuse = false;
  Net net(context, deployed.net, input.options);
  Findings findings;
  for (const CaffeChange& change : check_caffe(net, dialect)) {
    // Notes are many: without the files that include this one.
    const std::string where =
        change.refused ? change.where : change.where.substr(0, change.where.find(" ("));
    add(&findings, change.refused ? Severity::error : Severity::info, where, change.layer, ": ",
        change.text);
  }
  return findings;
}

}  // namespace crema
