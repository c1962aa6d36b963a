# What _cython_direct.pyx uses of the headers beside it.

cdef extern from *:
    """
    #include "_scratch.h"
    #include "_float.h"
    #include "_depthwise.h"
    #include "_plane_sums.h"
    #include "_pointwise.h"
    #include "_pointwise_packed.h"
    #include "_rows.h"
    #include "_double.h"
    #include "_depthwise.h"
    #include "_plane_sums.h"
    #include "_pointwise.h"
    #include "_pointwise_packed.h"
    #include "_rows.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    void size_output(Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t useful_threads(const Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    bint has_strips(const Shape*) nogil
    bint is_multi_output(const Shape*) nogil
    bint sums_planes(const Shape*) nogil
    bint is_pointwise(const Shape*, Py_ssize_t) nogil
    Py_ssize_t pointwise_channels(const Shape*) nogil
    void pointwise_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint, bint, Py_ssize_t*, float*) nogil
    void pointwise_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint, bint, Py_ssize_t*, double*) nogil
    void plane_sums_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint) nogil
    void plane_sums_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint) nogil
    bint packs_weights(const Shape*, Py_ssize_t, bint, bint) nogil
    bint copies_pixels(const Shape*) nogil
    void pack_pointwise_float(const Shape*, const float*, float*) nogil
    void pack_pointwise_double(const Shape*, const double*, double*) nogil
    void pointwise_packed_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint, float*) nogil
    void pointwise_packed_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint, double*) nogil
    Py_ssize_t pieces_float(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t pieces_double(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t work_float(const Shape*, Py_ssize_t) nogil
    Py_ssize_t work_double(const Shape*, Py_ssize_t) nogil
    void band_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, float*) nogil
    void band_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, double*) nogil
    Py_ssize_t depthwise_bands_float(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t depthwise_bands_double(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t depthwise_work_float(const Shape*, Py_ssize_t) nogil
    Py_ssize_t depthwise_work_double(const Shape*, Py_ssize_t) nogil
    Py_ssize_t depthwise_weights_float(const Shape*) nogil
    Py_ssize_t depthwise_weights_double(const Shape*) nogil
    void depthwise_transpose_float(const Shape*, const float*, Py_ssize_t, float*) nogil
    void depthwise_transpose_double(const Shape*, const double*, Py_ssize_t, double*) nogil
    void depthwise_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float*, float*) nogil
    void depthwise_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*) nogil
    void* scratch(size_t) nogil
    Py_ssize_t whole_lines(Py_ssize_t) nogil
    enum:
        VECTOR_SIZE
        VECTOR_REGISTERS "REGISTERS"
        MAX_TILE_OUTPUTS
        TILE_LOG2_VECTORS
        IM2COL_TILES_BYTES
        MAX_CACHED_BATCH_BYTES
        MAX_SHARE_WEIGHT_BYTES
        MIN_SHARE_OUTPUTS
        PLANE_BLOCK_BYTES
        MIN_STREAMED_BYTES
    const char* INSTRUCTIONS
