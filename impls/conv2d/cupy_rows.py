"""Raw CUDA kernels for outputs that see one channel: rows are copied to shared memory, a few at a time or whole images."""

# A group of threads, a warp or a block, does one thing together. LIVE rows of output see a row of input, SPAN_X columns of
# input are seen by a thread's outputs in a row.
BOTH = r"""
#define SIDE (16 / (int)sizeof(T))  // outputs of a thread, side by side
#define PARTS ((SHIFT + SPAN_X + SIDE - 1) / SIDE)  // of 128 bits, that a thread reads of a row

struct alignas(16) Part { T at[SIDE]; };
struct alignas(STORE * sizeof(T)) Stored { T at[STORE]; };

// Until all threads of the group have come here.
__device__ __forceinline__ void together()
{
    if (GROUP == 32) __syncwarp();
    else __syncthreads();
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
typedef unsigned int Place;  // in shared memory, in bytes
#define UNIT (int)sizeof(T)
__device__ __forceinline__ Place place_of(T* at) { return (Place)__cvta_generic_to_shared(at); }

// Copy LOAD elements to shared memory, or zeros: on the way until wait() says so.
__device__ __forceinline__ void copy(const Place to, const T* from, const bool inside)
{
    const int bytes = inside ? LOAD * (int)sizeof(T) : 0;
    if (LOAD * sizeof(T) == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else if (LOAD * sizeof(T) == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// What was copied since the last call of this belongs together.
__device__ __forceinline__ void close() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all threads of the group have come here, and their copies are there but for the last LATER that were closed.
template <int LATER> __device__ __forceinline__ void wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LATER) : "memory");
    together();
}
#else
typedef T* Place;
#define UNIT 1
__device__ __forceinline__ Place place_of(T* at) { return at; }
__device__ __forceinline__ void copy(const Place to, const T* from, const bool inside)
{
    #pragma unroll
    for (int i = 0; i < LOAD; ++i) to[i] = inside ? from[i] : (T)0;
}
__device__ __forceinline__ void close() {}
template <int LATER> __device__ __forceinline__ void wait() { together(); }
#endif

// Read the taps of an output channel, and begin each of its sums with the bias, which is returned.
__device__ __forceinline__ T begin_with(
    T (&sum)[LIVE][SIDE], T (&taps)[TAPS_Y * TAPS_X], const T* __restrict__ weight, const T* __restrict__ bias, const INDEX k)
{
    #pragma unroll
    for (int tap = 0; tap < TAPS_Y * TAPS_X; ++tap) taps[tap] = weight[k * (TAPS_Y * TAPS_X) + tap];
    const T start = bias ? bias[k] : (T)0;
    #pragma unroll
    for (int live = 0; live < LIVE; ++live)
        #pragma unroll
        for (int side = 0; side < SIDE; ++side) sum[live][side] = start;
    return start;
}

// Read what a thread's outputs see of a row: SPAN_X pixels from SHIFT on.
__device__ __forceinline__ void read(T (&pixels)[PARTS * SIDE], const Part* from)
{
    #pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        const Part found = from[part];
        #pragma unroll
        for (int i = 0; i < SIDE; ++i) pixels[part * SIDE + i] = found.at[i];
    }
}

// Add what row `line` of the STRIDE_Y rows that are new to row p of output has for the rows that see it; turn is p % LIVE.
__device__ __forceinline__ void add(
    T (&sum)[LIVE][SIDE], const T (&taps)[TAPS_Y * TAPS_X], const T* pixels, const int turn, const int line)
{
    #pragma unroll
    for (int r = 0; r < TAPS_Y; ++r) {
        if (r * DILATION_Y % STRIDE_Y != line) continue;
        const int above = r * DILATION_Y / STRIDE_Y;  // rows of output between p and the one that sees it through r
        #pragma unroll
        for (int s = 0; s < TAPS_X; ++s)
            #pragma unroll
            for (int side = 0; side < SIDE; ++side)
                sum[(turn - above + LIVE) % LIVE][side] += taps[r * TAPS_X + s] * pixels[side * STRIDE_X + s * DILATION_X];
    }
}
"""

STREAM = (
    BOTH
    + r"""
#define LINES (LIVE * STRIDE_Y)  // rows of input that are copied together
#define PIECES (PITCH / LOAD)  // that a row of an image is copied in: HEAD, then MAIN, then what is left over;
#define ROUNDS ((IMAGES * MAIN + GROUP - 1) / GROUP)  // so many of MAIN by each thread, the same of every row,
#define REST (PIECES - MAIN)  // and what is before and behind of all rows and images together,
#define MINE ((REST * IMAGES * LINES + GROUP - 1) / GROUP)  // is so many pieces of a thread

extern "C" __global__ __launch_bounds__(GROUP * GROUPS, RESIDENT) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int strips_x, int strips_y, int tall, int height, int width, int outputs,
    int out_height, int out_width, int top, int left)
{
    __shared__ Part copies[GROUPS][AHEAD][LINES][IMAGES * PITCH / SIDE];
    // Strips along x, along y, then images; a warp whose images would begin beyond the last has none to store.
    const unsigned INDEX strip = (unsigned INDEX)blockIdx.x * GROUPS + (GROUPS > 1 ? threadIdx.y : 0);
    const unsigned INDEX place = strip / strips_x;
    const INDEX first_q = (INDEX)(strip % strips_x) * (LANES * SIDE);
    const INDEX first_p = (INDEX)(place % strips_y) * tall;
    const INDEX first = (INDEX)(place / strips_y) * IMAGES;
    const int lane = threadIdx.x, image = lane < IMAGES * LANES ? lane / LANES : 0, beside = lane % LANES * SIDE;
    const INDEX plane = first + image, q = first_q + beside;
    const bool summing = lane < IMAGES * LANES && plane < planes && q < out_width;
    const INDEX k = summing ? plane % outputs : 0;

    // Where this thread's pieces lie in the input when row 0 is the first to be copied, and which lie in its columns.
    const INDEX x = first_q * STRIDE_X - left - SHIFT;  // a multiple of LOAD, as the width is: a piece lies inside whole
    // Where this is in MAIN, eight threads side by side read 128 bytes that are one piece of the memory's, if rows allow it.
    INDEX source[ROUNDS + MINE];
    int destination[ROUNDS + MINE];
    bool inside[ROUNDS + MINE], mine[ROUNDS + MINE];
    #pragma unroll
    for (int m = 0; m < ROUNDS + MINE; ++m) {
        const bool main = m < ROUNDS;
        const int i = (main ? m : m - ROUNDS) * GROUP + lane, each = main ? MAIN : REST, beyond = i / each;
        const int which = beyond % IMAGES, line = main ? 0 : beyond / IMAGES;
        const int piece = main ? HEAD + i % each : i % each < HEAD ? i % each : i % each + MAIN;
        const INDEX from = first + which, column = x + piece * LOAD;
        mine[m] = main ? beyond < IMAGES : line < LINES;
        inside[m] = mine[m] && from < planes && column >= 0 && column < width;
        source[m] = inside[m] ? (from / MULTIPLIER * height + line) * width + column : 0;
        destination[m] = (line * IMAGES + which) * PITCH + piece * LOAD;
    }
    const INDEX last = first_p + tall < out_height ? first_p + tall : out_height;
    INDEX y = first_p * STRIDE_Y - top;  // the next row to be copied, ...
    const INDEX seen = (last - 1) * STRIDE_Y - top + (TAPS_Y - 1) * DILATION_Y + 1;  // ... which ends before this one, ...
    const INDEX bottom = seen < 0 ? 0 : seen < height ? seen : height;
    int free = 0;  // ... and which copy of LINES it goes to
    const auto fetch = [&]() {
        const Place to = place_of(copies[threadIdx.y][free][0]->at);
        const INDEX above = y * width;
        // Compared as numbers without a sign, rows above the image are many; what is not within is not read.
        #pragma unroll
        for (int m = 0; m < ROUNDS; ++m)
            #pragma unroll
            for (int line = 0; line < LINES; ++line) {
                const bool within = inside[m] && (unsigned INDEX)(y + line) < (unsigned INDEX)bottom;
                const Place at = to + (destination[m] + line * IMAGES * PITCH) * UNIT;
                if ((m + 1) * GROUP <= IMAGES * MAIN || mine[m]) copy(at, input + (source[m] + above + line * width), within);
            }
        const bool whole = y >= 0 && y + LINES <= bottom;
        #pragma unroll
        for (int m = ROUNDS; m < ROUNDS + MINE; ++m) {
            const int line = destination[m] / (IMAGES * PITCH);
            const bool within = inside[m] && (whole || (unsigned INDEX)(y + line) < (unsigned INDEX)bottom);
            if ((m + 1 - ROUNDS) * GROUP <= REST * IMAGES * LINES || mine[m])
                copy(to + destination[m] * UNIT, input + (source[m] + above), within);
        }
        close();
        y += LINES;
        free = free == AHEAD - 1 ? 0 : free + 1;
    };
    for (int ahead = 0; ahead < AHEAD - 1; ++ahead) fetch();

    T taps[TAPS_Y * TAPS_X], sum[LIVE][SIDE];
    const T start = begin_with(sum, taps, weight, bias, k);

    // Threads without outputs read too, but never beyond a row of copies.
    const int begin = (image * PITCH + beside * STRIDE_X) / SIDE;
    const unsigned INDEX kept = summing ? last - first_p : 0;  // rows of outputs that this thread has to store
    INDEX target = (plane * out_height + first_p - (LIVE - 1)) * out_width + q;
    int ready = 0;  // the copy that is read next
    // STRIDE_Y rows of input are the first that row p of output sees, and the last that row p - LIVE + 1 does.
    for (INDEX p = first_p; p < last + LIVE - 1;) {
        wait<AHEAD - 2>();
        fetch();  // into the copy that all threads have read in the turns before
        #pragma unroll
        for (int turn = 0; turn < LIVE; ++turn, ++p, target += out_width) {
            #pragma unroll
            for (int line = 0; line < STRIDE_Y; ++line) {
                T pixels[PARTS * SIDE];
                read(pixels, &copies[threadIdx.y][ready][turn * STRIDE_Y + line][begin]);
                add(sum, taps, pixels + SHIFT, turn, line);
            }
            const int done = (turn + 1) % LIVE;
            #pragma unroll
            for (int side = 0; side < SIDE; side += STORE) {
                Stored made;
                #pragma unroll
                for (int i = 0; i < STORE; ++i) made.at[i] = sum[done][side + i];
                // Compared as numbers without a sign, rows before the first are many.
                if ((unsigned INDEX)(p - first_p - (LIVE - 1)) < kept && (side == 0 || q + side < out_width))
                    *reinterpret_cast<Stored*>(output + target + side) = made;
            }
            #pragma unroll
            for (int side = 0; side < SIDE; ++side) sum[done][side] = start;
        }
        ready = ready == AHEAD - 1 ? 0 : ready + 1;
    }
    wait<0>();  // nothing is on its way to shared memory that others have by then
}
"""
)

SMALL = (
    BOTH
    + r"""
#define ROW (WIDTH / LOAD)  // threads that copy a row of input,
#define ROWS (GROUP / ROW)  // so many rows at a time
#define MADE_ROW (OUT_WIDTH / STORE)  // and those that store a row of output
#define MADE_ROWS (GROUP / MADE_ROW)

extern "C" __global__ __launch_bounds__(GROUP * GROUPS) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int outputs)
{
    __shared__ Part images[GROUPS][IMAGES][APART];
    // The last warps begin where their images are the last ones, and make again what others make too.
    const INDEX mine = ((INDEX)blockIdx.x * GROUPS + threadIdx.y) * IMAGES;
    const INDEX first = mine < planes - IMAGES ? mine : planes - IMAGES;
    // Rows lie one behind the other in memory, so that a warp copies what lies together, and apart here.
    const int lane = threadIdx.x;
    T* const all = images[threadIdx.y][0]->at;
    const Place to = place_of(all + lane / ROW * PITCH + LEFT + SHIFT + lane % ROW * LOAD);
    const T* const from = input + ((first * HEIGHT + lane / ROW) * WIDTH + lane % ROW * LOAD);
    #pragma unroll
    for (int i = 0; i < IMAGES; ++i)
        #pragma unroll
        for (int row = 0; row < HEIGHT; row += ROWS)
            if (lane / ROW < (row + ROWS < HEIGHT ? ROWS : HEIGHT - row))
                copy(to + (i * APART * SIDE + row * PITCH) * UNIT, from + (i * HEIGHT + row) * WIDTH, true);
    close();

    const int image = lane / LANES < IMAGES ? lane / LANES : 0, beside = lane % LANES * SIDE;
    const INDEX k = (first + image) % outputs;
    T taps[TAPS_Y * TAPS_X], sum[LIVE][SIDE];
    const T start = begin_with(sum, taps, weight, bias, k);
    const Part* const source = images[threadIdx.y][image] + lane % LANES * STRIDE_X;
    Part* const target = images[threadIdx.y][image] + lane % LANES;
    const int x = beside * STRIDE_X - LEFT;
    wait<0>();
    for (int p = 0; p < OUT_HEIGHT + LIVE - 1;) {
        #pragma unroll
        for (int turn = 0; turn < LIVE; ++turn, ++p) {
            #pragma unroll
            for (int line = 0; line < STRIDE_Y; ++line) {
                const int y = p * STRIDE_Y + line - TOP;
                if (y < 0 || y >= HEIGHT) continue;
                T pixels[PARTS * SIDE];
                read(pixels, source + y * (PITCH / SIDE));
                // Only the first and the last threads of a row see what is beside the image, and nothing was copied there.
                #pragma unroll
                for (int i = 0; i < SPAN_X; ++i) {
                    const bool before = i < LEFT && x + i < 0;
                    const bool behind = (LANES - 1) * SIDE * STRIDE_X - LEFT + i >= WIDTH && x + i >= WIDTH;
                    if (before || behind) pixels[SHIFT + i] = (T)0;
                }
                add(sum, taps, pixels + SHIFT, turn, line);
            }
            // Rows of output take the place of rows of input that no thread will read again.
            together();
            const int done = (turn + 1) % LIVE, row = p - (LIVE - 1);
            Part made;
            #pragma unroll
            for (int side = 0; side < SIDE; ++side) {
                made.at[side] = sum[done][side];
                sum[done][side] = start;
            }
            if (lane / LANES < IMAGES && row >= 0 && row < OUT_HEIGHT) target[row * (PITCH / SIDE)] = made;
        }
    }
    together();
    const T* const made = all + lane / MADE_ROW * PITCH + lane % MADE_ROW * STORE;
    T* const result = output + ((first * OUT_HEIGHT + lane / MADE_ROW) * OUT_WIDTH + lane % MADE_ROW * STORE);
    #pragma unroll
    for (int i = 0; i < IMAGES; ++i)
        #pragma unroll
        for (int row = 0; row < OUT_HEIGHT; row += MADE_ROWS)
            if (lane / MADE_ROW < (row + MADE_ROWS < OUT_HEIGHT ? MADE_ROWS : OUT_HEIGHT - row))
                *reinterpret_cast<Stored*>(result + (i * OUT_HEIGHT + row) * OUT_WIDTH)
                    = *reinterpret_cast<const Stored*>(made + i * APART * SIDE + row * PITCH);
}
"""
)
