/* Numbers that were found by measuring: the thresholds between ways to compute, and the sizes of what stays in caches. Each comment ends with
   the processor that the number was tuned on, by the short names of docs/kernels.md: Zen 3, Zen 4 and Zen 5 are AMD
   EPYC, the first with AVX2, the others with AVX-512; Xeon 167 and Xeon 207 are Intel Xeon of family 6 and that model, with AVX-512. "Not
   recorded" means that no commit or page names it. Elements are numbers, of four or eight bytes; a core's first cache is its smallest. */
#pragma once

#include "_machine.h"

/* Products up to which one thread computes, for each byte of a vector: others take longer to begin. Xeon 167. */
#define MAX_ONE_THREAD_PRODUCTS_PER_VECTOR_BYTE (1 << 12)

/* Rows of an outer product kept in registers, two vectors each: 28 of 32 registers, or 12 of 16. Not recorded. */
#if REGISTERS == 32
#define PRODUCT_ROWS 14
#else
#define PRODUCT_ROWS 6
#endif

/* cpu.cython_direct, along rows ------------------------------------------------------------------------------------------------- */

/* Output rows of a tile: a vector of the input, once loaded, serves them all. Not recorded; two, six and eight gained nothing. */
#define TILE_ROWS 4
/* The same where rows do not share vectors: two units want eight sums. Zen 3. */
#define ANY_TILE_ROWS(vectors) ((vectors) > 2 ? TILE_ROWS / 2 : TILE_ROWS)

/* Columns up to which an image is copied with its padding; of wider ones only the edges are, and those whose outputs have up to a quarter as
   many columns. And bytes of such a copy, which should stay near the core: 24 and 48 KB gained nothing. Not recorded. */
#define MAX_COPIED_COLUMNS 512
#define MAX_COPY_BYTES (96 << 10)

/* Bytes after which the pixels that are copied next are prefetched: images that come from memory are waited for all the same. Zen 3. */
#define COPY_PREFETCH_BYTES 2048

/* Pieces of all images for each thread, for an even load, and output rows of such a piece, since neighbours see the same. Not recorded. */
#define PIECES_PER_THREAD 4
#define MIN_PIECE_ROWS 8

/* Bytes of output from which on it is stored by non-temporal stores: caches keep little of it. Zen 5. */
#define MIN_STREAMED_BYTES (8 << 20)

/* Outputs that one pointer to weights serves: for more GCC has too few registers. Zen 3 (16 registers), Xeon 207 (32). */
#define OUTPUTS_PER_POINTER (REGISTERS == 16 ? 3 : 6)
/* Outputs of a tile; with two vectors of each 12 of 16 registers hold sums, or 24 of 32. */
#define MAX_TILE_OUTPUTS (2 * OUTPUTS_PER_POINTER)
/* Vectors of such a tile, as a power of two. */
#define TILE_LOG2_VECTORS 1
/* Outputs up to which tiles of one output, of four rows, are as fast as tiles of several. Zen 3 (16 registers), Xeon 167 (32). */
#define MAX_SINGLE_OUTPUTS(copied) (REGISTERS == 16 ? 2 : (copied) ? 3 : 4)
/* Outputs from which on a thread has outputs of its own: their sums take longer than copying what they see once more. Xeon 167. */
#define MIN_SHARE_OUTPUTS 24

/* cpu.cython_direct, tiles copied tap by tap (im2col of a tile) ------------------------------------------------------------------ */

/* Bytes of the tiles, which should stay near the core while all outputs read them; taps of one, for which a core's first cache has room. Zen 3;
   768 KB and 64, 128 or 384 channels at a time gained nothing. */
#define IM2COL_TILES_BYTES (192 << 10)
#define MAX_IM2COL_TAPS 384
/* Taps from which on rows that are copied are copied tap by tap too, and outputs, with 16 registers. Zen 3 (16 registers), Xeon 167 (32). */
#define MIN_IM2COL_TAPS (REGISTERS == 16 ? 40 : 20)
#define MIN_IM2COL_OUTPUTS 20
/* Outputs whose sums, with 32 registers, take as long as copying what they see. Xeon 167. */
#define IM2COL_COPY_OUTPUTS 14

/* cpu.cython_direct, 1x1 layers -------------------------------------------------------------------------------------------------- */

/* Bytes of a batch that a core's own caches keep, whose pixels are not prefetched. Zen 3 (16 registers), Xeon 167 (32). */
#define MAX_CACHED_BATCH_BYTES (REGISTERS == 16 ? 256 << 10 : 768 << 10)
/* Channels up to which the next tile's pixels are prefetched; of more those of further channels are, PREFETCH_CHANNELS on. With fewer these
   would be so far ahead that their sums take about as long as memory. Xeon 167. */
#define MAX_TILE_PREFETCH_CHANNELS 96
#define PREFETCH_CHANNELS 8
/* Elements of a channel over which images whose channels lie a multiple of four cache lines apart are read more slowly. Xeon 167. */
#define MAX_FAST_PLANE_ELEMENTS 12288

/* Bytes of weights that a share of the outputs reads again and again, from a cache further away. Zen 3. */
#define MAX_SHARE_WEIGHT_BYTES (1536 << 10)

/* Outputs of a tile of one vector with packed weights; of two vectors half as many. Xeon 167, as all numbers down to the next line. */
#define MAX_POINTWISE_OUTPUTS (2 * PRODUCT_ROWS)
/* Channels and outputs up to which no pixels are copied: the first cache keeps what all outputs see. */
#define MAX_UNCOPIED_CHANNELS 16
#define MAX_UNCOPIED_OUTPUTS 16
/* Channels up to which pixels are not copied for all outputs of one tile either, and elements of an image up to which they are: a core's own
   caches do not keep larger ones, and copies wait for memory once more. */
#define MAX_UNCOPIED_TILE_CHANNELS 192
#define MAX_CACHED_IMAGE_ELEMENTS (1 << 19)
/* Pixels of a channel, of all images, from which on packing weights pays, or twice as many for any number of outputs; and for each output
   where pixels are copied. */
#define MIN_POINTWISE_PACKED_PIXELS 192
#define MIN_COPIED_PIXELS_PER_OUTPUT 10
/* Elements of an image that the first cache keeps, whose pixels are not prefetched. */
#define MAX_L1_IMAGE_ELEMENTS (1 << 13)
/* Elements of a channel over which the next tiles are prefetched as well as the next channels. */
#define MAX_SHORT_PLANE_ELEMENTS 1024

/* cpu.cython_direct, sums of planes ----------------------------------------------------------------------------------------------- */

/* Outputs of a 1x1 layer up to which it waits for memory, whatever is done with a pixel. Xeon 207, as the next line's. */
#define MAX_PLANE_SUM_OUTPUTS 2
/* Planes that are added at a time, and bytes of a block of each. */
#define PLANES_AT_A_TIME 8
#define PLANE_BLOCK_BYTES 2048

/* cpu.cython_direct, images of one channel: strips ------------------------------------------------------------------------------- */

/* HAS_LARGE_STRIPS: sums of five and seven rows fit into registers, and vectors are shifted in one step. MAX_STRIP_COLUMNS, of an image: down
   longer rows, and down narrow strips sooner, a core waits for memory; 0 for no strips. MAX_STRIP_VECTORS: of a strip whose sums fit into
   registers. Zen 4, for AVX2 too. */
#if defined(__AVX512F__)
#define HAS_LARGE_STRIPS 1
#define MAX_STRIP_COLUMNS 512
#define MAX_STRIP_VECTORS(size, stride) ((size) == 7 && (stride) == 1 ? 3 : 4)
#elif defined(__AVX2__)
#define HAS_LARGE_STRIPS 0
#define MAX_STRIP_COLUMNS 64
#define MAX_STRIP_VECTORS(size, stride) 3
#else
#define HAS_LARGE_STRIPS 0
#define MAX_STRIP_COLUMNS 0
#endif
/* Bytes of a piece of an image, of which one strip's surroundings lie near for the next; where all outputs are MIN_STREAMED_BYTES, less of them
   stays near. And the fewest rows of a piece for each row of taps: some sums of its first and last rows are thrown away. Zen 4. */
#define STRIP_PIECE_BYTES (256 << 10)
#define UNCACHED_STRIP_PIECE_BYTES (64 << 10)
#define MIN_STRIP_ROWS 4
/* Rows after which the next are prefetched, since the machine does not foresee a strip's next row. Zen 4. */
#define STRIP_PREFETCH_ROWS 16

/* cpu.cython_direct, depthwise layers across channels ---------------------------------------------------------------------------- */

/* Bytes of what a band sees and of its sums, which should stay in a core's own cache. Zen 4. */
#define DEPTHWISE_BAND_BYTES (512 << 10)
/* Sums of a row side by side: enough to hide the time that each takes, few enough for the registers of any machine. Not recorded. */
#define DEPTHWISE_SUMS 7

/* cpu.cython_packed -------------------------------------------------------------------------------------------------------------- */

/* Vectors of output channels that are summed together: of six pixels none of one alone, which would leave half of the registers without work.
   Zen 3 (16 registers), not recorded (32). */
#define MAX_BLOCK_VECTORS (REGISTERS == 16 ? 3 : 2)
/* Elements from a channel's pixels to the next one's where images are tiled, whole vectors and a piece's pixels at least; whether a piece fits
   (six pixels do); pieces that are copied together. Zen 3. */
#define TILED_PITCH_ELEMENTS 8
#define FITS_TILES (PRODUCT_ROWS <= TILED_PITCH_ELEMENTS)
#define TILED_CHUNK_PIECES 8
/* Outputs at each end of a row of which it is asked tap by tap whether they see padding: two were 9 % slower or 7 % faster. Zen 4. */
#define MAX_EDGE_OUTPUTS 3
/* Vectors of a row up to which it is padded by vectors: three calls of the library take longer. Zen 4. */
#define MAX_SHORT_ROW_VECTORS 4
/* Bytes of copied images, and of images from which strided 1x1 layers copy; of a thread's own, which stay in its core's cache. Not recorded. */
#define SHARED_COPY_BYTES (8 << 20)
#define OWN_COPY_BYTES (256 << 10)
/* Bytes from one place in memory to the next that takes the same place in that cache. Zen 4. */
#define CACHE_SET_BYTES (128 << 10)
/* How far ahead is prefetched what lies in more streams than the machine's own prefetcher follows: elements of an output's weights, and
   channels of tiles. Zen 3. */
#define WEIGHT_PREFETCH_ELEMENTS 64
#define TILED_PREFETCH_CHANNELS 16
/* Bytes of weights and pixels over which they are summed over some of the channels after the other, half as many each: they are read so often
   that they should come from a core's own cache, for fourteen pixels at a time less often than for six. Pieces that are summed over some of
   the channels before the next channels' turn. Zen 3 (16 registers), Xeon 207 (32). */
#define MAX_TURN_BYTES ((FITS_TILES ? 128 : 1024) << 10)
#define PIECES_PER_TURN 64
/* Taps of an iteration: counting them and prefetching take as long as several sums of six pixels, which fourteen hide. Zen 3. */
#define TAPS_PER_ITERATION (FITS_TILES ? 2 : 1)
/* Bytes of so many pages as a core soon finds: images over that are copied for 1x1 layers of six pixels. Zen 3. */
#define FAST_PAGES_BYTES (256 << 10)
/* Pairs of vectors of outputs from which on strided 1x1 layers copy, and up to which each thread packs weights of its own; pixels for each
   such pair and thread from which on it does, and of tiled images for each thread. Not recorded; tiled Zen 3. */
#define MIN_STRIDED_COPY_PAIRS 4
#define MAX_OWN_WEIGHT_PAIRS 8
#define MIN_OWN_PIXELS_PER_PAIR 12
#define MIN_OWN_TILED_PIXELS 400
/* Jobs for each thread from which on their number need not be a multiple of the threads. Not recorded. */
#define EVEN_JOBS_PER_THREAD 4

/* cpu.cython_winograd ------------------------------------------------------------------------------------------------------------ */

/* Tiles of a row that are transformed at a time. Not recorded. */
#define WINOGRAD_CHUNK_TILES 16
/* Groups of tiles whose products are all held while weights are transformed for some blocks of input channels at a time: of one piece, and of
   all pieces where there are several, lest the sums of one be short. Not recorded; several pieces Zen 3. */
#define MAX_HELD_GROUPS 4
#define WEIGHT_BLOCKS_PER_TURN 8
#define PIECE_BLOCKS_PER_TURN 16
/* Bytes of transformed tiles: half and twice as many gained nothing. Not recorded. */
#define TRANSFORMED_TILES_BYTES (4 << 20)
/* Tiles that are worth a transform of the weights, for which there may be more bytes, up to so many. Zen 3. */
#define MIN_TILES_PER_WEIGHT_TRANSFORM 96
#define MAX_TRANSFORMED_TILES_BYTES (16 << 20)
/* Tiles of a thread from which on it has tiles, and transforms weights, of its own. Not recorded. */
#define MIN_TILES_PER_THREAD 24

/* conv2d_backward's cpu.cython_direct, the gradient of the weight: not recorded --------------------------------------------------- */

/* Taps of a tile: nine sums of three by three, or five of a row, of 16 registers. */
#define GRADIENT_TILE_ROWS 3
#define GRADIENT_TILE_COLUMNS 5
/* Bytes of images that every pair of channels goes over before the next images, and of sums at a time. */
#define GRADIENT_IMAGES_BYTES (256 << 10)
#define GRADIENT_SUMS_BYTES (4 << 20)
/* Pairs of channels for each thread: with fewer the threads share the images instead. */
#define MIN_PAIRS_PER_THREAD 16
