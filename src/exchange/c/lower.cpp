#include "exchange/c/lower.h"

#include "exchange/c/functions.h"
#include "exchange/c/integers.h"
#include "exchange/c/lowering.h"
#include "exchange/c/training.h"

namespace crema {

namespace {

// A value of a function's name, such as relu, would hide it.
void rename_values(const CNames& names, CProgram* program) {
  std::set<std::string> functions;
  for (const CCall& call : program->inference.calls) functions.insert(call.function);
  if (program->training)
    for (const CCall& call : program->training->routine.calls) functions.insert(call.function);
  std::set<std::string> taken = names.taken;
  for (const CValue& value : program->values) taken.insert(value.name);
  for (CValue& value : program->values) {
    if (functions.count(value.name) == 0) continue;
    value.name += "_blob";
    while (!taken.insert(value.name).second) value.name += "_";
  }
}

// The values that both functions have of what training changes.
void add_trained(Context& context, const std::vector<CTrainedParameter>& trained, CProgram* program,
                 CNames* names) {
  CTraining& training = *program->training;
  EmitGraph graph(context, program, &training.routine, names);
  for (const CTrainedParameter& parameter : trained) {
    const int id = graph.add_value(parameter.key, parameter.shape, CType::real);
    CValue& value = program->values[id];
    value.memory = CValue::Memory::trained;
    value.offset = static_cast<int64_t>(training.first_weights.size());
    names->taken.insert(value.name);
    names->trained[parameter.key] = id;
    training.trained.push_back(id);
    training.first_weights.insert(training.first_weights.end(), parameter.values.begin(),
                                  parameter.values.end());
  }
  training.first_weights.push_back(mark_of(trained));
}

}  // namespace

CProgram lower_to_c(Context& context, onnx::ModelProto model, const std::string& prefix) {
  fuse_integers(model.mutable_graph());
  CProgram program;
  program.prefix = prefix;
  CNames names{c_function_names(), {}, {}};
  CLowering(context, model, {}, &program, &program.inference, &names).run(true);
  rename_values(names, &program);
  plan_memory(&program);
  return program;
}

CProgram lower_to_c(Context& context, const OnnxModel& inference, const OnnxModel& training,
                    const std::vector<CTrainedParameter>& trained, const CUpdate& update,
                    const std::string& prefix) {
  CProgram program;
  program.prefix = prefix;
  program.training.emplace();
  CNames names{c_function_names(), {}, {}};
  add_trained(context, trained, &program, &names);
  CLowering(context, inference.model, inference.trained, &program, &program.inference, &names)
      .run(true);
  add_training(context, training, trained, update, &program, &names);
  rename_values(names, &program);
  plan_memory(&program);
  return program;
}

}  // namespace crema
