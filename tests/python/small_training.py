"""A net and a solver that train in a moment, for tests of programs."""
NET = '''
layer { name: "data" type: "DummyData" top: "data" top: "target" dummy_data_param {
  shape { dim: 8 dim: 3 } shape { dim: 8 dim: 2 }
  data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
'''
SOLVER = '''
net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 20 display: 5 test_iter: 1 test_interval: 10
snapshot: 10 snapshot_prefix: "net" random_seed: 1 solver_mode: CPU
'''
