#!/usr/bin/env bash
# Names that this project once had instead of the field's words: none of them may come back, neither in text nor as a file's name.
set -euo pipefail
cd "$(dirname "$0")/.."
old=(
  GatherProduct gather_product GatherRole GatherTensors GatherNumbers GatherTile GatherTap gather_plain
  WindowProduct window_product window_gradient WindowNumbers RowsConv RowsNumbers PixelsConv PixelsNumbers PixelsTile
  conv_rows conv_pixels conv_plain conv_patches PlainConv block_image BlockConv BlockCase blocks_of_image
  WeightedSum FastestSum fastest_trial make_conv_fastest make_dense_fastest gather_forward
  ConvNumbers UpdateNumbers TransformNumbers GradientNumbers live_numbers
  column_sums DropoutDraws DrawnBody change_drawn drawn_values least_ranks
  Rearrangement rearrange_cpu rearrange_gpu RearrangeLayer PoolAxes pool_axes AxesWindow AxisPlace kMostSpatialAxes
  RegionPool RegionKind RegionTables region_pool_forward RegionPoolingBase BestBoxes best_boxes unit_rows Orthogonalizer
  early_launch launch_early FastDivide SoftmaxWay softmax_way joins_gradients join_pieces cut_pieces
  FilmModule FilmFrames crema_films open_film WindowSamples window_samples draws_of TuneWay Untuned
  AsideLane aside_lane aside_workspace kAsideLanes worth_joining worth_pooling joined_member joined_types again_storage
  takes_sums gives_sums_to top_sums bottom_sums more_top_diff takes_affine_from can_take_relu ends_in_relu top_diff_parts
  sums_makers sums_reader hand_relus_on ask_for_sums GroupsBeside kMostBeside note_served batch_norm_serves_gpu
  pixels_forward pixels_weights StorePixels rows_forward rows_weights StoreRows kStem3x3At DepthwiseWalk DepthwiseTiles
  depthwise_sums_walk depthwise_gradients_walk depthwise_sums_tiles depthwise_gradients_tiles DepthwisePositions DepthwiseRows
  DepthwiseOctetRows ConvCandidate forward_with_sums gives_sums takes_affine gradient_takes_affine adds_weights relu_taken with_rows
  UpdateRates UpdateStep UpdateParams UpdateInputs UpdateFinish BlockTable kUpdateBlocks update_blocks update_params live_params
  update_rates rates_at parallel_sums squared_row ChannelGradient kParts has_tensor_cores
  WindowNd max_backward_apart scatter_kept ShareOut spread_slice goals_of over_goals strips_of pack_spot roi_bodies
  LinkNeighbours SpreadToCorners ReadCorners BlurCorners LessShares goal_tap goal_desc at_goal kept_position
  ConvOperator WindowGrid PlainShape launch_window_gemm load_turned_weights window_entry offset_in_cell store_cells draw_cells
  mark_shape_dynamic bottom_diff_storage gradient_part_storages saved_storage affine_storage statistics_storage LabelledPlaces
  rank_of ranked_position ranked_score min_ranks find_min_ranks min_of_best sort_ranks best_ranks keep_boxes BoxLists in_lists
  max_of_group PositionSlope attention_slopes neighbourhood_sum centre_only eps_beside_root plain_rows
)
pattern=$(IFS='|'; echo "${old[*]}")
status=0
if git grep -nwE "$pattern" -- src tools tests proto data_scripts models README.md CMakeLists.txt ':!tests/names_test.sh'; then
  echo "names_test.sh: these names are old: the body of the commit that made this test says which are theirs" >&2
  status=1
fi
if git ls-files src tools tests | grep -E "(^|/)($pattern)[_.]"; then
  echo "names_test.sh: files by old names" >&2
  status=1
fi
exit $status
