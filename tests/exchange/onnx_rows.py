"""Runs the models that onnx_rows wrote in ONNX Runtime and compares what they compute with Crema.

onnx_rows.py FOLDER: prints a line for each model that disagrees, and how many agree; exit code 1 if one
disagrees, or if a layer of a type that is not in NOT_EXPORTED cannot be written. A model whose batch has any size also
gets every input twice: what it gives for the first half must be the same.
"""
import collections
import pathlib
import re
import sys

import numpy
import onnx
import onnxruntime

from row_files import blobs


# Rows that ONNX Runtime cannot run, or that ONNX leaves open, and why.
KNOWN = {
    "roi_align_samples": "a RoI of image -1, which gives zeros",
    "roi_pooling_default": "a RoI of image -1, which gives zeros",
    "roi_pooling_outside": "a RoI of image -1, which gives zeros",
    "upsample_mask_twice": "ScatterElements does not say which of two values for one place stays",
}

# Rows whose layer combines the samples along the first axis, and those that join it with another one.
OF_THE_WHOLE_BATCH = {"softmax_axis_0", "softmax_axis0", "ctc_greedy_decoder_reads", "ctc_greedy_decoder_does_not_merge",
                      "ctc_greedy_decoder_indicators", "batch_reindex_gather"}

# Types that no operators compute: losses and metrics, data, what only training needs, and
#   MultiStageMeanfield  its lattice (CRF-RNN)
#   RegionPooling        the maximum of a ring
#   Reorder              the plan's, not the net's
#   Decode, Knn, RBM     what they remember of training batches
NOT_EXPORTED = set("""
Accuracy AccuracyDecode AccuracyEncoding BboxAccuracy DetectionAccuracy DetectionEvaluate EltwiseAccuracy
EvalDetection LabelsequenceAccuracy MultiLabelAccuracy SegAccuracy
CenterLoss ContrastiveLoss CtcLoss DetectionLoss DiceCoefLoss EuclideanLoss FocalLoss GeneralContrastiveLoss
GeneralTripletLoss HingeLoss InfogainLoss K1_EuclideanLoss K2_EuclideanLoss L1Loss MAE MalisLoss
MultiBoxFocalLoss MultiBoxLoss MultiLabelLoss MultinomialLogisticLoss OrdinalRegressionLoss PairwiseLoss
RegionLoss RelevantLoss SigmoidCrossEntropyLoss SigmoidCrossEntropyLossWeighted SmoothL1Loss SmoothL1LossOHEM
SoftmaxCrossEntropy2Loss SoftmaxCrossEntropyLoss SoftmaxWithLoss SoftmaxWithLossOHEM SqueezeDetLoss TripletLoss
WarpCTCLoss WeightEuclideanLoss WeightedEuclideanLoss WeightedSoftmaxWithLoss Yolov3
BoxAnnotatorOHEM DetectNetTransformation GlobalLSEMargin MarginInnerProduct ProposalTarget
Decode Knn MultiStageMeanfield RBM RegionPooling Reorder
""".split())


def with_all_outputs(model, names):
    known = {output.name for output in model.graph.output}
    types = {info.name: info for info in model.graph.value_info}
    for name in names:
        if name not in known:
            model.graph.output.append(types[name])
    return model


def axis_of_batch(value):
    """The axis N of an input or output, or None."""
    extents = [extent.dim_param for extent in value.type.tensor_type.shape.dim]
    return extents.index("N") if "N" in extents else None


def differences_of_twice(session, model, inputs):
    """Between the outputs and those for a batch with every sample twice."""
    axes = {value.name: axis_of_batch(value) for value in model.graph.input}
    if not any(axis is not None for axis in axes.values()):
        return
    twice = {name: values if axes[name] is None else numpy.concatenate([values, values], axes[name])
             for name, values in inputs.items()}
    names = [value.name for value in model.graph.output]
    for value, once, result in zip(model.graph.output, session.run(names, inputs), session.run(names, twice)):
        axis = axis_of_batch(value)
        if axis is None:
            continue
        first = numpy.take(result, range(once.shape[axis]), axis)
        scale = max(numpy.abs(once).max(initial=0, where=numpy.isfinite(once)), 1e-3)
        if result.shape[axis] != 2 * once.shape[axis]:
            yield f"{value.name} of two batches has shape {result.shape}, of one {once.shape}"
        elif not numpy.allclose(first, once, rtol=0, atol=1e-5 * scale, equal_nan=True):
            yield f"{value.name} of two batches differs from that of one"


def differences(folder, name, fields, tolerance):
    values = numpy.fromfile(folder / f"{name}.values", numpy.float32)
    inputs, values = blobs(fields["inputs"], values)
    expected, _ = blobs(fields["values"], values)
    model = onnx.load(folder / f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(with_all_outputs(model, expected).SerializeToString(), options)
    used = {value.name for value in session.get_inputs()}
    inputs = {key: value for key, value in inputs.items() if key in used}
    computed = session.run(list(expected), inputs)
    if name not in OF_THE_WHOLE_BATCH:
        yield from differences_of_twice(session, model, inputs)
    for (blob, reference), result in zip(expected.items(), computed):
        if result.shape != reference.shape:
            yield f"{blob} has shape {result.shape}, not {reference.shape}"
            continue
        if reference.size == 0:
            continue
        scale = max(numpy.abs(reference).max(), 1e-3)
        error = numpy.abs(result - reference).max() / scale
        if not error <= tolerance:
            yield f"{blob} differs by {error:.2g} of its largest value"


def main():
    folder = pathlib.Path(sys.argv[1])
    outcomes = collections.Counter()
    refused = collections.Counter()
    for line in (folder / "rows.tsv").read_text().splitlines():
        name, kind, tolerance, *rest = line.split("\t")
        fields = dict(field.split("=", 1) for field in rest)
        if "refused" in fields:
            outcomes["refused"] += 1
            unknown = re.search(r"a layer of type (\w+) cannot be written", fields["refused"])
            if unknown and unknown[1] not in NOT_EXPORTED:
                outcomes["not exported"] += 1
                print(f"{name}: {fields['refused']}")
            refused[fields["refused"].split(": ", 2)[-1][:150]] += 1
            continue
        try:
            found = list(differences(folder, name, fields, max(1e-5, float(tolerance))))
        except Exception as error:  # of the checker or the runtime: the row's result
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        outcomes["known to differ" if name in KNOWN else "differ" if found else "agree"] += 1
        for text in found if name not in KNOWN else []:
            print(f"{name} ({kind}): {text}")
    print(dict(outcomes))
    if "-v" in sys.argv:
        for why, count in refused.most_common():
            print(count, why)
    return 1 if outcomes["differ"] or outcomes["not exported"] else 0


if __name__ == "__main__":
    sys.exit(main())
