# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""libjpeg-turbo's decoder, called from Python: see cpu.libjpeg and cpu.libjpeg_region.

It takes sizes beside arrays, and raises ValueError before any work where an array does not hold what a size says.
"""

ctypedef unsigned char byte

# In C because libjpeg leaves a function that failed by longjmp(), of which Cython knows nothing.
cdef extern from *:
    """
    #include <setjmp.h>
    #include <stddef.h>
    #include <stdio.h>
    #include <string.h>
    #include <jpeglib.h>
    #include <jerror.h>

    enum { DECODED, DAMAGED, NO_MEMORY };

    /* Colours with half as many columns are interpolated between the samples on both sides, up to two pixels away. */
    static const JDIMENSION MARGIN = 2;

    struct failure {
        struct jpeg_error_mgr manager; /* first, so that libjpeg's pointer to it is one to all of this */
        jmp_buf back;
        int cut; /* whether the pixels ended before the image did, of which libjpeg only warns */
    };

    static void give_up(j_common_ptr info) { longjmp(((struct failure*)info->err)->back, 1); }
    static void say_nothing(j_common_ptr info) { (void)info; }
    static void look_for_the_end(j_common_ptr info, int level)
    {
        const int code = info->err->msg_code;
        if (level < 0 && (code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF)) ((struct failure*)info->err)->cut = 1;
    }

    /* Whether a component has no scan, or a progressive one not all bits of its coefficients: scans may be cut off whole. */
    static int lacks_scans(const struct jpeg_decompress_struct* info)
    {
        for (int c = 0; c < info->num_components; ++c) {
            if (!info->comp_info[c].quant_table) return 1;
            for (int k = 0; info->coef_bits && k < DCTSIZE2; ++k)
                if (info->coef_bits[c][k]) return 1;
        }
        return 0;
    }

    /* The region of an image of rows x columns pixels, reduced by the scale, to target (height, width, 3). cut: set where the
       bytes ended before the region did, or whole scans are missing. */
    static int decode_region(
        const unsigned char* bytes, size_t count, unsigned scale, size_t rows, size_t columns, size_t top, size_t left,
        size_t height, size_t width, unsigned char* target, int* cut)
    {
        struct jpeg_decompress_struct info;
        struct failure failed;
        JDIMENSION begin = 0, wide = (JDIMENSION)columns;
        JSAMPARRAY row;
        memset(&info, 0, sizeof info); /* for jpeg_destroy, where jpeg_create fails */
        info.err = jpeg_std_error(&failed.manager);
        failed.manager.error_exit = give_up;
        failed.manager.output_message = say_nothing;
        failed.manager.emit_message = look_for_the_end;
        failed.cut = 0;
        if (setjmp(failed.back)) {
            jpeg_destroy_decompress(&info);
            return failed.manager.msg_code == JERR_OUT_OF_MEMORY ? NO_MEMORY : DAMAGED;
        }
        jpeg_create_decompress(&info);
        jpeg_mem_src(&info, (unsigned char*)bytes, (unsigned long)count);
        jpeg_read_header(&info, TRUE);
        info.out_color_space = JCS_RGB;
        info.scale_num = 1;
        info.scale_denom = scale;
        jpeg_start_decompress(&info);
        if (info.output_height != rows || info.output_width != columns || info.output_components != 3) {
            jpeg_destroy_decompress(&info);
            return DAMAGED;
        }
        if (width < columns) {
            const JDIMENSION end = left + width + MARGIN < columns ? (JDIMENSION)(left + width + MARGIN) : wide;
            begin = left > MARGIN ? (JDIMENSION)left - MARGIN : 0;
            wide = end - begin;
            jpeg_crop_scanline(&info, &begin, &wide); /* to whole blocks: it begins further left */
        }
        if (top) jpeg_skip_scanlines(&info, (JDIMENSION)top);
        row = (*info.mem->alloc_sarray)((j_common_ptr)&info, JPOOL_IMAGE, 3 * info.output_width, 1);
        for (size_t y = 0; y < height; ++y) {
            if (jpeg_read_scanlines(&info, row, 1) != 1) give_up((j_common_ptr)&info);
            memcpy(target + 3 * width * y, row[0] + 3 * (left - begin), 3 * width);
        }
        *cut = failed.cut || lacks_scans(&info);
        jpeg_destroy_decompress(&info);
        return DECODED;
    }
    """
    enum:
        DECODED
        NO_MEMORY
    int decode_region(
        const byte* bytes, size_t count, unsigned scale, size_t rows, size_t columns, size_t top, size_t left, size_t height,
        size_t width, byte* target, int* cut,
    ) noexcept nogil


def decode(const byte[::1] jpeg not None, image, region, unsigned scale, byte[:, :, ::1] target not None):
    """The region of a JPEG that is image = (rows, columns) pixels large at 1 / scale, to target (height, width, 3).

    Raises ValueError for a JPEG that cannot be decoded or has another size, and MemoryError.
    """
    cdef Py_ssize_t rows, columns, top, left, height, width
    cdef int found, cut
    rows, columns = image
    top, left, height, width = region
    # By differences, which no size can make overflow once it is known to be between the bounds.
    if not (0 < height <= rows and 0 < width <= columns and 0 <= top <= rows - height and 0 <= left <= columns - width):
        raise ValueError(f"region {height} x {width} at {top}, {left} does not lie inside {rows} x {columns}")
    if (target.shape[0], target.shape[1], target.shape[2]) != (height, width, 3):
        raise ValueError(f"target has shape {tuple(target.shape)[:3]}, not {(height, width, 3)}")
    if not jpeg.shape[0]:
        raise ValueError("no bytes")
    with nogil:
        found = decode_region(
            &jpeg[0], jpeg.shape[0], scale, rows, columns, top, left, height, width, &target[0, 0, 0], &cut
        )
    if found == NO_MEMORY:
        raise MemoryError
    if found != DECODED:
        raise ValueError("it cannot be decoded")


def whole(const byte[::1] jpeg not None, size_t rows, size_t columns):
    """Whether a JPEG of rows x columns pixels holds all of them; so does for this one that cannot be decoded at all.

    All its codes are read, which is most of the work of decoding it.
    """
    cdef byte[3] last
    cdef int cut = 0
    with nogil:
        decode_region(&jpeg[0], jpeg.shape[0], 1, rows, columns, rows - 1, columns - 1, 1, 1, last, &cut)
    return not cut
