#include "tools/flags/flags.h"

DEFINE_string(solver, "", "The solver definition: a prototxt file.");
DEFINE_string(model, "", "The net definition: a prototxt file.");
DEFINE_string(
    weights, "",
    "Trained weights (.caffemodel or .caffemodel.h5) to start from; separate several with commas.");
DEFINE_string(weights_mode, "strict",
              "What to do with a layer whose blobs have other shapes in -weights: strict is an "
              "error, match leaves that layer as it is, or loads the same values reshaped.");
DEFINE_string(snapshot, "",
              "The .solverstate file to resume from; auto: the newest snapshot under "
              "snapshot_prefix or in the folder of -run, or a fresh start if there is none.");
DEFINE_string(
    run, "",
    "A folder for everything about this run: its command, net and solver, log, metrics and "
    "snapshots; auto: a new one, runs/NAME-1, runs/NAME-2, ..., where NAME is that of the net.");
DEFINE_int32(resume_check, 0,
             "Instead of training, checks that a run stopped after this many iterations and "
             "resumed equals an uninterrupted one, bit for bit. Keeps no files.");
DEFINE_string(phase, "", "TRAIN or TEST: selects the layers of the net.");
DEFINE_int32(level, 0, "The level of the net's state, for include and exclude rules.");
DEFINE_string(stage, "",
              "Stages of the net's state, separated by commas, for include and exclude rules.");
DEFINE_string(assume, "",
              "Random data of these shapes instead of the data layers, in deploy inputs, such as "
              "data=64x3x224x224,label=64; `default` takes the "
              "shapes from the layers' own fields.");
DEFINE_int32(batch, 0, "Replaces the first dimension of every source of data; 0 leaves it.");
DEFINE_int32(iterations, 50, "The number of iterations to run.");
DEFINE_bool(
    epoch, false,
    "Tests each record once, instead of -iterations batches; results are means over records.");
DEFINE_string(
    set, "",
    "Sets a field of the solver or the net, or a variable of their files, such as base_lr=0.02, "
    "'layer[conv1].convolution_param.num_output=64' or depth=50; may be given several times.");

DEFINE_string(gpu, "",
              "The number of the GPU to run on. Empty: the solver's setting, else the CPU.");
DEFINE_string(batch_mode, "per_gpu",
              "What batch_size means with several ranks: per_gpu, the batch of each, or total, "
              "that of all together.");
DEFINE_double(
    rank_timeout, 60,
    "Seconds after which a rank that is silent or keeps the others waiting counts as lost.");
DEFINE_string(implementation, "",
              "Prefers the implementation of this name in every kernel that has one (-v 1 logs "
              "what each uses).");
DEFINE_string(off, "",
              "Optimizations to switch off, separated by commas: fuse (adjacent layers as one "
              "kernel), format (the memory order that is fastest for kernels), memory (activations "
              "that share memory), overlap (weight gradients in parallel with blob gradients), "
              "recompute (computing values again for backward instead of keeping them), resident "
              "(small databases in GPU memory), capture (training iterations as CUDA graphs).");
DEFINE_string(recompute, "auto",
              "Which values are recomputed for the backward pass instead of kept: auto, large ones "
              "if that takes little time, or all, which takes the least memory.");
DEFINE_string(precision, "",
              "The precision: fp32, tf32, bf16 or fp16. Empty: the solver's setting, else tf32 on "
              "a GPU and fp32 on a CPU.");
DEFINE_string(tune, "quick",
              "How many ways to compute a convolution or product are timed on a GPU before the "
              "fastest is chosen and cached: off (one), quick (six) or full (all).");
DEFINE_bool(deterministic, false,
            "Chooses kernels without timing them (-tune off) and adds up in a fixed order: the "
            "same seed gives the same weights on every card of one model, bit for bit.");
DEFINE_string(gpu_memory, "",
              "The most GPU memory to use: a fraction such as 0.8, or a size such as 12GB or "
              "8000MiB. Empty: all.");
DEFINE_bool(dump_plan, false,
            "Prints what the net was compiled to: each step with its layers, precision, kernels "
            "and memory.");
DEFINE_bool(memory, false, "Prints how the memory is used, by layer and otherwise.");
DEFINE_bool(forward_only, false, "Times forward passes only.");
DEFINE_bool(train_step, false, "Times whole training steps: forward, backward and update.");
DEFINE_string(tensorboard, "",
              "A folder for TensorBoard event files, which show the run live; auto: tensorboard in "
              "the folder of -run, or next to the snapshots.");
DEFINE_int32(tensorboard_histograms, 0,
             "With -tensorboard: the number of iterations between histograms of each layer's "
             "weights and gradients; 0: none.");
DEFINE_bool(json, false,
            "Prints the results on the standard output, as one JSON object: outputs by name, each "
            "class, iterations, seconds.");
DEFINE_bool(quiet, false,
            "Shows only warnings, errors and results; log files still get everything.");
DEFINE_string(
    sigint_effect, "stop",
    "What SIGINT (Ctrl-C) does: snapshot, stop, snapshot_stop (a snapshot, then the end) or none.");
DEFINE_string(sighup_effect, "snapshot",
              "What SIGHUP does: snapshot, stop, snapshot_stop or none.");
DEFINE_string(sigterm_effect, "snapshot_stop",
              "What SIGTERM, which cluster schedulers send, does: snapshot, stop, snapshot_stop or "
              "none.");

DEFINE_string(
    wire, "fp32",
    "The type of gradients sent between ranks: fp32, or bf16 or fp16 for half the bytes.");
DEFINE_bool(shard, false,
            "Each rank updates its part of the weights and sends it to the others: this divides "
            "the memory of histories and the time of the update by the number of ranks.");
DEFINE_string(gpus, "8,16,32,64,128,256",
              "The numbers of GPUs to predict for, separated by commas.");
DEFINE_string(bandwidth, "",
              "GB/s in each direction between two GPUs of a host and, after a comma, from a host "
              "to others, over all its network cards.");
DEFINE_string(latency, "",
              "Latency of a message in microseconds, inside a host and, after a comma, between "
              "hosts. Empty: 4,14, which NCCL assumes for NVLink and InfiniBand.");
DEFINE_int32(per_host, 8, "The number of GPUs per host.");
DEFINE_string(buckets, "",
              "MiB of gradients per sum, or separated by commas those of the first, the other and "
              "the last sums. Empty: 32,32,4 on GPUs, 1,8 on CPUs.");
DEFINE_string(times, "",
              "A file of times that an earlier `crema scale` wrote with -output FILE.json: nothing "
              "is measured.");

DEFINE_string(backend, "lmdb",
              "The kind of database: lmdb, leveldb, or hdf5 for HDF5Data: a folder of files and, "
              "next to it, their list, NAME.txt.");
DEFINE_bool(gray, false, "Reads images as one grey channel.");
DEFINE_bool(shuffle, false, "Shuffle the records.");
DEFINE_int32(resize_width, 0, "The width to resize images to; 0: no change.");
DEFINE_int32(resize_height, 0, "The height to resize images to; 0: no change.");
DEFINE_bool(scaled_decoding, false,
            "With -resize_height and -resize_width: decode large JPEGs at a half, a quarter or an "
            "eighth of their size before they are resized. Faster; values differ a little.");
DEFINE_int32(min_dim, 0,
             "Enlarges images with a smaller shorter side to this many pixels there, keeping the "
             "aspect ratio; applied before -resize_width and -resize_height.");
DEFINE_int32(max_dim, 0,
             "Reduces images with a larger longer side, after -min_dim, to this many pixels there, "
             "with their proportions kept.");
DEFINE_int64(max_pixels, 268435456,
             "The most pixels of an image: larger ones are neither decoded nor stored.");
DEFINE_bool(strict, false,
            "Makes an unreadable image an error: the exit code is 1 and no database is made. "
            "Otherwise such images are skipped and counted.");
DEFINE_string(label_map_file, "", "The numbers of the classes: a prototxt file with a LabelMap.");
DEFINE_string(anno_format, "", "How boxes are written: voc, coco or yolo.");
DEFINE_bool(include_background, false, "Label 0 is the background, none_of_the_above.");
DEFINE_string(delimiter, " ", "What separates name, label and display name on a line.");
DEFINE_string(
    anno_type, "detection",
    "What annotations are: detection (boxes) or classification (LIST has `image label`).");
DEFINE_string(label_type, "xml",
              "The kind of annotation files, one for each image: xml (Pascal VOC's), txt (lines "
              "`class xmin ymin xmax ymax`, in pixels) or json (as SSD's scripts for COCO write).");
DEFINE_bool(detection, false,
            "The net's output is that of DetectionEvaluate: the mean average precision over all "
            "batches, as with eval_type: \"detection\" in a solver.");
DEFINE_string(ap_version, "11point",
              "How -detection computes the area under the precision-recall curve: 11point, "
              "MaxIntegral or Integral.");
DEFINE_bool(show_per_class_result, false, "-detection also prints the average of each class.");
DEFINE_string(engine, "", "Accepted from scripts for Intel's Caffe, without effect.");
DEFINE_string(param_server, "", "Accepted from scripts for Intel's Caffe, without effect.");
DEFINE_string(name_id_file, "", "Ids of images instead of their names: lines `name id`.");
DEFINE_bool(check_label, false, "Checks that no name and no number occurs twice in the label map.");
DEFINE_bool(check_size, false, "Checks that all records have the same size.");
DEFINE_bool(encoded, false, "Stores the encoded image files instead of their pixels.");
DEFINE_string(encode_type, "",
              "The code for -encoded, such as png or jpg; empty keeps each file's own.");
DEFINE_bool(exif, true,
            "Rotates images as their EXIF data says; encoded files that are not upright are "
            "encoded again. false: keeps all files as stored.");
DEFINE_bool(as_stored, false,
            "Keeps the channels and bits of each file: grey is one channel, alpha the fourth, and "
            "more than 8 bits become real numbers. Otherwise all images get 3 channels of 8 bits.");
DEFINE_int32(threads, 0, "Threads that read and decode images; 0: one per processor.");
DEFINE_string(label, "",
              "The label columns, separated by commas: names, or numbers from 0 (-1 is the last). "
              "The others are the data.");
DEFINE_string(shape, "",
              "The shape of the data of a row: a number of values, or channels x height x width "
              "such as 1x28x28. Empty: all values in a row.");
DEFINE_bool(coarse, false, "CIFAR-100: the labels of the 20 superclasses instead of the 100.");
DEFINE_bool(overwrite, false, "Replaces existing databases.");
DEFINE_string(split, "",
              "Makes two databases, NAME_train and NAME_val, stratified by class: the fraction for "
              "training, such as 0.9, or the number of records, such as 45000.");
DEFINE_bool(channel_mean, false,
            "Also prints the mean and the standard deviation of each channel, for which all images "
            "are decoded.");
DEFINE_string(from, "",
              "The weights to convert: a safetensors file, or a .pth that torch.save wrote.");
DEFINE_string(names, "",
              "Maps modules of -from to layers: a file of pair {  from: \"conv1\" to: \"conv1\" }. "
              "Empty: torchvision.names next to the net if there is one, else equal names.");
DEFINE_int64(seed, 1, "The seed of random numbers.");
DEFINE_int64(
    hdf5_rows, 10000,
    "With -backend hdf5: the most records per file; a file has at most 256 MiB of values.");
DEFINE_int32(hdf5_compress, 0,
             "With -backend hdf5: the level of gzip, from 1 to 9; 0 does not compress.");
DEFINE_double(scale, 1,
              "With -backend hdf5: the factor for values, such as 0.00390625, for nets whose "
              "HDF5Data has no transform_param.");

DEFINE_string(
    labels, "",
    "The names of the classes: a text file, one per line, the first for class 0. Empty: labels.txt "
    "in the database, as converters write it, or what a deploy file names, else numbers.");
DEFINE_string(
    metrics, "",
    "What tests report about a classifier besides the net's outputs, separated by commas: "
    "confusion, per_class, top5 (or another number), auc, map, f1, iou. Empty: for up to 100 "
    "classes `test` prints the confusion, precision and recall of each class; `train` writes them "
    "to its metrics file, for `crema report` and `crema watch`.");
DEFINE_int32(top, 5, "The number of classes to print for each image, the most probable first.");
DEFINE_string(blob, "", "The blob with the scores. Empty: the net's Softmax or Sigmoid output.");
DEFINE_string(resize, "",
              "The size to resize image files to in pixels, such as 256x256 (width x height); if "
              "the net's input is smaller, it gets the middle. Empty: what the net says.");
DEFINE_string(mean, "",
              "What to subtract: one value, one per channel such as 104,117,123, or a mean file "
              "(binaryproto). Empty: what the net says.");
DEFINE_bool(rgb, false, "Channels are R, G, B; otherwise B, G, R.");

DEFINE_string(output, "", "The file to write.");
DEFINE_string(output_weights, "", "The file for the weights of the net in -output: a .caffemodel.");
DEFINE_string(
    run_id, "",
    "The run of the metrics file to report, or the first letters of its name; several, separated "
    "by commas, or all are compared. Empty: the one that wrote -weights, else the last.");
DEFINE_int32(port, 8080, "The port to serve pages at; 0 takes a free one.");
DEFINE_string(host, "127.0.0.1",
              "The address to serve pages at: 127.0.0.1 for this machine only, 0.0.0.0 for all "
              "that can reach it.");
DEFINE_string(token, "",
              "The token that lets a page stop a run, in its address as ?token=WORD. Empty: a "
              "random one. Others can read it on the command line; put it into CREMA_FLAGS.");

DEFINE_double(start_lr, 1e-6, "The first learning rate.");
DEFINE_double(end_lr, 10, "The last learning rate, unless the loss diverges before.");
DEFINE_string(
    sweep, "",
    "A field of the solver or the net with the values to try, such as base_lr=0.1,0.01 or "
    "'layer[conv1].convolution_param.num_output=16,32'; may be given several times.");
DEFINE_int32(random, 0,
             "Trains only this many combinations, chosen at random with -seed; 0: all of them.");
DEFINE_int32(jobs, 0,
             "How many runs to train at the same time. 0: one, with -gpu one on each card.");
DEFINE_string(with, "",
              "Additional flags for the second of the two nets, such as \"-precision fp16\".");

DEFINE_int32(opset, 17, "The version of ONNX's operators: 11 to 21.");
DEFINE_bool(fold, true, "Makes BatchNorm, Scale and Bias part of the convolution before them.");
DEFINE_bool(verify, true,
            "Runs the model with random inputs in each runtime that -python has, and compares.");
DEFINE_string(python, "", "The Python in which runtimes are looked for. Empty: python3.");
DEFINE_double(tolerance, 1e-4,
              "The largest difference of a result that verification allows, as a fraction of its "
              "largest value.");
