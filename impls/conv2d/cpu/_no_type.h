/* Deselects a type of element, after which the headers that are compiled once for each type may be included again: their guards. */
#undef REAL
#undef SIZE
#undef NAME

#undef CONVBENCH_DEPTHWISE
#undef CONVBENCH_IM2COL_TILES
#undef CONVBENCH_MULTI_OUTPUT
#undef CONVBENCH_PACKED
#undef CONVBENCH_PADDED_COPY
#undef CONVBENCH_PLANE_SUMS
#undef CONVBENCH_POINTWISE
#undef CONVBENCH_POINTWISE_PACKED
#undef CONVBENCH_ROWS
#undef CONVBENCH_SINGLE_CHANNEL
#undef CONVBENCH_VECTORS
#undef CONVBENCH_WEIGHT_GRADIENT
#undef CONVBENCH_WINOGRAD
#undef CONVBENCH_WINOGRAD_TILES
