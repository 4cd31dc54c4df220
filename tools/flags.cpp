#include "tools/flags.h"

DEFINE_string(solver, "", "The solver definition: a prototxt file.");
DEFINE_string(model, "", "The net definition: a prototxt file.");
DEFINE_string(
    weights, "",
    "Trained weights (.caffemodel or .caffemodel.h5) to start from; several files with commas.");
DEFINE_string(weights_mode, "strict",
              "What to do with a layer whose blobs have other shapes in -weights: strict is an "
              "error, match leaves that layer as it is, or loads the same values reshaped.");
DEFINE_string(
    snapshot, "",
    "A .solverstate file from which training goes on; auto: that of the newest snapshot under "
    "snapshot_prefix, or in the folder of -run, or a new start where there is none.");
DEFINE_string(
    run, "",
    "A folder for everything of this training: its command, net and solver, log, metrics and "
    "snapshots; auto: a new one, runs/NAME-1, runs/NAME-2, ..., where NAME is that of the net.");
DEFINE_int32(
    resume_check, 0,
    "Instead of training, tries whether a training of this net that is stopped after so many "
    "iterations and resumed equals one that was not, bit for bit. Nothing of it is kept.");
DEFINE_string(phase, "", "TRAIN or TEST: which layers of the net take part.");
DEFINE_int32(level, 0, "The level of the net's state, which include and exclude rules see.");
DEFINE_string(stage, "",
              "Stages of the net's state with commas, which include and exclude rules see.");
DEFINE_string(assume, "",
              "Random data of these shapes instead of the data layers, in deploy inputs, such as "
              "data=64x3x224x224,label=64; `default` takes the "
              "shapes from the layers' own fields.");
DEFINE_int32(batch, 0, "Replaces the first dimension of every source of data; 0 leaves it.");
DEFINE_int32(iterations, 50, "The number of iterations to run.");
DEFINE_bool(epoch, false,
            "Test on each record of the data once, in place of -iterations; results are means over "
            "records.");
DEFINE_string(
    set, "",
    "Sets a field of the solver or the net, or a variable of their files, such as base_lr=0.02, "
    "'layer[conv1].convolution_param.num_output=64' or depth=50; may be given several times.");

DEFINE_string(gpu, "", "The GPU to run on: its number. Empty: what the solver says, else the CPU.");
DEFINE_string(
    batch_mode, "per_gpu",
    "What batch_size is where several ranks train: per_gpu, that of each, or total, of all "
    "together.");
DEFINE_double(rank_timeout, 60,
              "After how many seconds a rank that is silent or keeps the others waiting is lost.");
DEFINE_string(implementation, "",
              "Prefers the implementation of this name in every kernel that has one (-v 1 logs who "
              "serves what).");
DEFINE_string(
    off, "",
    "What to leave out, with commas: fuse (neighbouring layers as one kernel), format (the "
    "order in memory that kernels like best), memory (activations that share memory), "
    "overlap (gradients of weights beside those of blobs), recompute (what backward can have "
    "written again instead of kept), resident (small databases in a GPU's memory), capture "
    "(training iterations as CUDA graphs).");
DEFINE_string(
    recompute, "auto",
    "Which values a training recomputes for the backward pass instead of keeping them: "
    "auto, large ones where that takes little time, or all that can be, which takes least "
    "memory.");
DEFINE_string(
    precision, "",
    "What to compute in: fp32, tf32, bf16 or fp16. Empty: what the solver says, else tf32 "
    "on a GPU and fp32 on a CPU.");
DEFINE_string(tune, "quick",
              "How many ways to compute a convolution or product are timed on a GPU before the "
              "fastest is taken and remembered: off (one), quick (six) or full (all).");
DEFINE_bool(
    deterministic, false,
    "Let nothing that is measured decide how to compute (-tune off), and add up in a fixed order: "
    "the same seed gives the same weights on every card of a kind, bit for bit.");
DEFINE_string(
    gpu_memory, "",
    "How much of the GPU's memory to take at most: a share such as 0.8, or a size such as "
    "12GB or 8000MiB. Empty: all.");
DEFINE_bool(dump_plan, false,
            "Print what the net was compiled to: each step with its layers, precision, kernels and "
            "memory.");
DEFINE_bool(memory, false, "Print which layers and what else take the memory.");
DEFINE_bool(forward_only, false, "Time forward passes only.");
DEFINE_bool(train_step, false, "Time whole training steps: forward, backward and update.");
DEFINE_string(
    tensorboard, "",
    "A folder for event files of TensorBoard, which shows the training while it runs; auto: "
    "tensorboard in the folder of -run, or beside the snapshots.");
DEFINE_int32(tensorboard_histograms, 0,
             "With -tensorboard: every how many iterations to write how the weights and gradients "
             "of each layer are distributed; 0: never.");
DEFINE_bool(json, false,
            "Print the results on the standard output, as one JSON object: outputs by name, each "
            "class, iterations, seconds.");
DEFINE_bool(quiet, false,
            "Show only warnings, errors and results; log files get everything all the same.");
DEFINE_string(sigint_effect, "stop",
              "What SIGINT (Ctrl-C) does: snapshot, stop, snapshot_stop (a snapshot in any case, "
              "then the end) or none.");
DEFINE_string(sighup_effect, "snapshot",
              "What SIGHUP does: snapshot, stop, snapshot_stop or none.");
DEFINE_string(sigterm_effect, "snapshot_stop",
              "What SIGTERM, which cluster schedulers send, does: snapshot, stop, snapshot_stop or "
              "none.");

DEFINE_string(
    wire, "fp32",
    "What gradients are sent as between ranks: fp32, or bf16 or fp16 for half the bytes.");
DEFINE_bool(shard, false,
            "Each rank updates its part of the weights and sends it to the others: the memory of "
            "histories and the time of the update are divided by the ranks.");
DEFINE_string(gpus, "8,16,32,64,128,256", "The numbers of GPUs to predict for, with commas.");
DEFINE_string(bandwidth, "",
              "GB/s in each direction from one GPU to another in a host and, after a comma, from a "
              "host to others, all its network cards together.");
DEFINE_string(latency, "",
              "Microseconds that a message takes inside a host and, after a comma, between hosts. "
              "Empty: 4,14, which NCCL assumes for NVLink and InfiniBand.");
DEFINE_int32(per_host, 8, "How many GPUs a host has.");
DEFINE_string(
    buckets, "",
    "MiB of gradients that are summed at once, or with commas the first, the others and the "
    "last. Empty: 32,32,4 on GPUs, 1,8 on CPUs.");
DEFINE_string(times, "",
              "A file of times that an earlier scale wrote with -output FILE.json: nothing is "
              "measured.");

DEFINE_string(backend, "lmdb",
              "The kind of database: lmdb, leveldb, or hdf5 for HDF5Data: a folder of files and, "
              "beside it, their list, NAME.txt.");
DEFINE_bool(gray, false, "Read images as one grey channel.");
DEFINE_bool(shuffle, false, "Shuffle the records.");
DEFINE_int32(resize_width, 0, "Width that images are resized to; 0 leaves them.");
DEFINE_int32(resize_height, 0, "Height that images are resized to; 0 leaves them.");
DEFINE_bool(scaled_decoding, false,
            "With -resize_height and -resize_width: decode large JPEGs at a half, a quarter or an "
            "eighth of their size before they are resized. Faster; values differ a little.");
DEFINE_int32(min_dim, 0,
             "Images whose smaller side has fewer pixels are enlarged to this, with their "
             "proportions kept; goes before -resize_width and -resize_height.");
DEFINE_int32(max_dim, 0,
             "Images whose larger side has more pixels, after -min_dim, are reduced to this, with "
             "their proportions kept.");
DEFINE_int64(max_pixels, 268435456,
             "An image with more pixels is not decoded, and none with more is stored.");
DEFINE_bool(strict, false,
            "An image that cannot be read is an error: the exit code is 1 and no database is made. "
            "Else such images are left out and counted.");
DEFINE_string(label_map_file, "", "The numbers of the classes: a prototxt file with a LabelMap.");
DEFINE_string(anno_format, "", "How boxes are written: voc, coco or yolo.");
DEFINE_bool(include_background, false, "Label 0 is the background, none_of_the_above.");
DEFINE_string(delimiter, " ", "What stands between name, label and name for people on a line.");
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
              "How -detection takes the area under a curve of precision and recall: 11point, "
              "MaxIntegral or Integral.");
DEFINE_bool(show_per_class_result, false, "-detection also prints the average of each class.");
DEFINE_string(engine, "", "Accepted from scripts for Intel's Caffe, without effect.");
DEFINE_string(param_server, "", "Accepted from scripts for Intel's Caffe, without effect.");
DEFINE_string(name_id_file, "", "Ids of images in place of their names: lines `name id`.");
DEFINE_bool(check_label, false, "Check that the label map has no name and no number twice.");
DEFINE_bool(check_size, false, "Check that all records are of one size.");
DEFINE_bool(encoded, false, "Store the encoded image files instead of their pixels.");
DEFINE_string(encode_type, "",
              "The code for -encoded, such as png or jpg; empty keeps each file's own.");
DEFINE_bool(exif, true,
            "Turn images as the EXIF data of cameras say; encoded files that are not upright are "
            "written anew. false: all files as they are stored.");
DEFINE_bool(as_stored, false,
            "Keep the channels and bits of each file: grey is one channel, alpha the fourth, and "
            "more than 8 bits become real numbers. Else all images get 3 channels of 8 bits.");
DEFINE_int32(threads, 0, "Threads that read and decode images; 0: one for each processor.");
DEFINE_string(label, "",
              "The columns with labels, with commas: their names, or numbers from 0 (-1 is the "
              "last). The others are the data.");
DEFINE_string(shape, "",
              "The shape of the data of a row: a number of values, or channels x height x width "
              "such as 1x28x28. Empty: all values in a row.");
DEFINE_bool(coarse, false, "CIFAR-100: the labels of the 20 superclasses instead of the 100.");
DEFINE_bool(overwrite, false, "Replace databases that exist already.");
DEFINE_string(split, "",
              "Make two databases, NAME_train and NAME_val, with equal shares of every class: the "
              "share for training, such as 0.9, or how many records, such as 45000.");
DEFINE_bool(channel_mean, false,
            "Also the mean and the standard deviation of each channel, for which all images are "
            "decoded.");
DEFINE_string(from, "",
              "The weights to convert: a safetensors file, or a .pth that torch.save wrote.");
DEFINE_string(
    names, "",
    "Which module of -from is which layer: a file of pair { from: \"conv1\" to: \"conv1\" }. "
    "Empty: torchvision.names beside the net if there is one, else equal names.");
DEFINE_int64(seed, 1, "The seed of what is random.");
DEFINE_int64(
    hdf5_rows, 10000,
    "With -backend hdf5: the most records in a file, which has 256 MiB of values at most.");
DEFINE_int32(hdf5_compress, 0,
             "With -backend hdf5: the level of gzip, from 1 to 9; 0 does not compress.");
DEFINE_double(scale, 1,
              "The factor for values, such as 0.00390625, with -backend hdf5: for nets whose "
              "HDF5Data has no transform_param.");

DEFINE_string(
    labels, "",
    "The names of the classes: a text file, one a line, the first for class 0. Empty: "
    "labels.txt in the database, as converters write it, or what a deploy file names, else "
    "numbers.");
DEFINE_string(
    metrics, "",
    "What tests say of a classifier besides the net's outputs, with commas: confusion, "
    "per_class, top5 (or another number), auc, map, f1, iou. Empty: for up to 100 classes "
    "`test` prints the confusion, and precision and recall of each class; `train` has "
    "them in its metrics file, for `crema report` and `crema watch`.");
DEFINE_int32(top, 5, "How many classes to print for each image, the most probable first.");
DEFINE_string(
    blob, "",
    "The blob with the scores. Empty: the output of the net that is a Softmax or Sigmoid.");
DEFINE_string(
    resize, "",
    "The size in pixels to which image files are resized, such as 256x256 (width x height), of "
    "which the middle is taken where the net's input is smaller. Empty: what the net says.");
DEFINE_string(mean, "",
              "What to subtract: one value, one a channel such as 104,117,123, or a mean file "
              "(binaryproto). Empty: what the net says.");
DEFINE_bool(rgb, false, "Channels are R, G, B; else B, G, R.");

DEFINE_string(output, "", "The file to write.");
DEFINE_string(output_weights, "", "The file for the weights of the net in -output: a .caffemodel.");
DEFINE_string(
    run_id, "",
    "The run of the metrics file to report, or the first letters of its name; several with commas, "
    "or all, are compared. Empty: the one that -weights belong to, else the last.");
DEFINE_int32(port, 8080, "The port to serve pages at; 0 takes a free one.");
DEFINE_string(host, "127.0.0.1",
              "The address to serve pages at: 127.0.0.1 for this machine only, 0.0.0.0 for all "
              "that reach it.");
DEFINE_string(token, "",
              "The word that lets a page stop a training, in its address as ?token=WORD. Empty: a "
              "random one. Others can read it on the command line; give it in CREMA_FLAGS.");

DEFINE_double(start_lr, 1e-6, "The learning rate to begin with.");
DEFINE_double(end_lr, 10, "The learning rate to end with, unless the loss diverges before.");
DEFINE_string(
    sweep, "",
    "A field of the solver or the net with the values to try, such as base_lr=0.1,0.01 or "
    "'layer[conv1].convolution_param.num_output=16,32'; may be given several times.");
DEFINE_int32(random, 0,
             "Trains only so many combinations, chosen at random with -seed; 0: all of them.");
DEFINE_int32(jobs, 0,
             "How many trainings run at the same time. 0: one, with -gpu one on each card.");
DEFINE_string(with, "",
              "The flags that the second of the two nets gets in addition, such as \"-precision "
              "fp16\".");
