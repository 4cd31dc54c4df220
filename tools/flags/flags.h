// Every flag of the program: names and defaults are Caffe's where Caffe has the flag. A verb
// accepts only those that it lists.
#pragma once

#include <gflags/gflags.h>

// What to run.
DECLARE_string(solver);
DECLARE_string(model);
DECLARE_string(weights);
DECLARE_string(weights_mode);
DECLARE_string(snapshot);
DECLARE_string(run);
DECLARE_int32(resume_check);
DECLARE_string(phase);
DECLARE_int32(level);
DECLARE_string(stage);
DECLARE_string(assume);
DECLARE_int32(batch);
DECLARE_int32(iterations);
DECLARE_bool(epoch);

// How to run it.
DECLARE_string(gpu);
DECLARE_string(batch_mode);
DECLARE_double(rank_timeout);
DECLARE_string(implementation);
DECLARE_string(off);
DECLARE_string(recompute);
DECLARE_string(precision);
DECLARE_string(tune);
DECLARE_bool(deterministic);
DECLARE_string(gpu_memory);
DECLARE_bool(dump_plan);
DECLARE_bool(memory);
DECLARE_bool(forward_only);
DECLARE_bool(train_step);
DECLARE_string(tensorboard);
DECLARE_int32(tensorboard_histograms);
DECLARE_bool(json);
DECLARE_bool(quiet);
DECLARE_string(sigint_effect);
DECLARE_string(sighup_effect);
DECLARE_string(sigterm_effect);

// Several GPUs and machines.
DECLARE_string(wire);
DECLARE_bool(shard);
DECLARE_string(gpus);
DECLARE_string(bandwidth);
DECLARE_string(latency);
DECLARE_int32(per_host);
DECLARE_string(buckets);
DECLARE_string(times);

// Converting data.
DECLARE_string(from);
DECLARE_string(names);
DECLARE_bool(detection);
DECLARE_string(ap_version);
DECLARE_bool(show_per_class_result);
DECLARE_bool(overwrite);
DECLARE_int64(seed);
DECLARE_double(scale);

// Classifying images.
DECLARE_string(labels);
DECLARE_string(metrics);
DECLARE_int32(top);
DECLARE_string(blob);
DECLARE_string(resize);
DECLARE_string(mean);
DECLARE_bool(rgb);

// Reports.
DECLARE_string(output);
DECLARE_string(output_weights);
DECLARE_string(run_id);

// Finding settings.
DECLARE_double(start_lr);
DECLARE_double(end_lr);
DECLARE_int32(random);
DECLARE_int32(jobs);
DECLARE_string(with);

// Export.
DECLARE_int32(opset);
DECLARE_bool(fold);
DECLARE_bool(verify);
DECLARE_string(python);
DECLARE_double(tolerance);
