"""DetectNet's Python layers from NVIDIA's Caffe and DIGITS: boxes that a net found in a grid, and their score."""
