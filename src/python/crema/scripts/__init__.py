"""The scripts of Caffe's folder `python`, with their flags: `python -m crema.scripts.classify IN OUT --model_def ...`
for classify.py, and so on for detect, draw_net, parse_log and train."""
