#include "exchange/c/training.h"

#include "exchange/c/gradient_emit.h"
#include "exchange/c/lowering.h"

namespace crema {

namespace {

class TrainingLowering {
 public:
  TrainingLowering(Context& context, const OnnxModel& model,
                   const std::vector<CTrainedParameter>& trained, const CUpdate& update,
                   CProgram* program, CNames* names)
      : model_(model),
        update_(update),
        program_(*program),
        lowering_(context, model.model, model.trained, program, &program->training->routine,
                  names) {
    for (const CTrainedParameter& parameter : trained) parameters_[parameter.key] = &parameter;
  }

  void run() {
    CTraining& training = *program_.training;
    training.seed = update_.seed;
    training.rate = update_.rate;
    if (update_.adam)
      training.setup = cat(
          "  /* Both means begin as zeros. */\n  const float correction = (float)(sqrt(1 - pow(",
          c_float(update_.momentum2), ", iteration + 1.0)) /\n      (1 - pow(",
          c_float(update_.momentum), ", iteration + 1.0)));\n");
    lowering_.run(false);
    find_needed();
    for (const auto& [name, gradient] : graph().loss_gradients)
      gradients_.parts[name].push_back(gradient);
    const std::vector<const onnx::NodeProto*>& operators = lowering_.operators();
    for (size_t i = operators.size(); i-- > 0;) go_back(*operators[i]);
  }

 private:
  EmitGraph& graph() { return lowering_.graph(); }

  // Values that depend on what the update changes, and who reads these parameters.
  void find_needed() {
    for (const auto& [name, key] : model_.trained) {
      if (!parameters_.at(key)->measured)
        gradients_.needed.insert(name);
      else
        readers_[key] = 0;
    }
    for (const onnx::NodeProto* const node : lowering_.operators()) {
      if (!is_needed(*node)) continue;
      gradients_.needed.insert(node->output().begin(), node->output().end());
      for (const std::string& input : node->input())
        if (is_updated(input)) ++readers_[model_.trained.at(input)];
    }
    for (const auto& [key, parameter] : parameters_)
      require(readers_.count(key) > 0, "the loss does not depend on parameter ", key, "; ",
              parameter->measured ? "leave its layer out of training with include { phase: TEST }"
                                  : "freeze it with param { lr_mult: 0 }");
  }

  // The name is that of a parameter with a gradient.
  bool is_updated(const std::string& name) const {
    return model_.trained.count(name) > 0 && gradients_.needed.count(name) > 0;
  }

  bool is_needed(const onnx::NodeProto& node) const {
    for (const std::string& input : node.input())
      if (gradients_.needed.count(input) > 0) return true;
    return false;
  }

  static bool is_loss(const onnx::NodeProto& node) {
    return node.op_type() == "SoftmaxLoss" || node.op_type() == "SigmoidLoss" ||
           node.op_type() == "EuclideanLoss";
  }

  void go_back(const onnx::NodeProto& node) {
    if (!is_needed(node)) return;
    CLowering::at_operator(node, [&] {
      if (is_loss(node)) {
        require(gradients_.needed.count(node.input(1)) == 0,
                "what it learns from is computed by layers that are trained; freeze these");
        return;
      }
      const GradientEmitter* const emitter = GradientEmitRegistry::find(node.op_type());
      require(emitter != nullptr, "the operator ", node.op_type(),
              " has no gradient in C; freeze this layer and those below it with param { lr_mult: 0 "
              "}, or train with `crema train`");
      GradientEmit op(graph(), node, lowering_.opset(), &gradients_);
      emitter->emit(op);
      for (const std::string& input : node.input()) {
        if (is_updated(input) && --readers_[model_.trained.at(input)] == 0) update(op, input);
      }
    });
  }

  // Parts of a shared parameter's gradient are of constants with different names, if these have different
  // shapes.
  std::vector<CArgument> parts_of(const std::string& key) {
    std::vector<CArgument> all;
    for (const auto& [name, other] : model_.trained)
      if (other == key)
        all.insert(all.end(), gradients_.parts[name].begin(), gradients_.parts[name].end());
    return all;
  }

  void update(GradientEmit& op, const std::string& constant) {
    const std::string& key = model_.trained.at(constant);
    const CTrainedParameter& parameter = *parameters_.at(key);
    const int64_t count = parameter.shape.count();
    const CArgument gradient = op.sum_of(parts_of(key), count);
    const CArgument weights = {CArgument::Kind::value, graph().trained(key), "", true};
    std::string rate = update_.adam ? "learning_rate * correction" : "learning_rate";
    if (parameter.lr_mult != 1) rate += cat(" * ", c_float(parameter.lr_mult));
    const std::string decay = cat("(struct decay){", c_float(update_.decay * parameter.decay_mult),
                                  ", ", update_.l1 ? 1 : 0, "}");
    if (!update_.adam) {
      op.call("sgd", {weights, history(key, count), gradient, op.number(count), op.text(rate),
                      op.number(update_.momentum), op.text(decay)});
      return;
    }
    CFields fields;
    fields.text("momentum", c_float(update_.momentum));
    fields.text("momentum2", c_float(update_.momentum2)).text("delta", c_float(update_.delta));
    op.call("adam",
            {weights, history(key, count), history(cat(key, "_square"), count), gradient,
             op.number(count), op.text(rate), op.text(decay)},
            "adam", fields);
  }

  CArgument history(const std::string& key, int64_t count) {
    const int id = graph().add_value(cat(key, "_history"), {count}, CType::real);
    program_.values[id].kept = true;
    return {CArgument::Kind::value, id, "", true};
  }

  const OnnxModel& model_;
  const CUpdate& update_;
  CProgram& program_;
  CLowering lowering_;
  CGradients gradients_;
  std::map<std::string, const CTrainedParameter*> parameters_;  // by key
  std::map<std::string, int> readers_;  // by key: operators whose gradients are still to come
};

}  // namespace

void add_training(Context& context, const OnnxModel& model,
                  const std::vector<CTrainedParameter>& trained, const CUpdate& update,
                  CProgram* program, CNames* names) {
  TrainingLowering(context, model, trained, update, program, names).run();
}

}  // namespace crema
