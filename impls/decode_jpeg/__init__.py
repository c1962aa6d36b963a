"""decode_jpeg(jpegs, regions=None, scale=1, workers=1): JPEGs as bytes to pixels, whole or a region of each, reduced or not.

jpegs: bytes of sequential or progressive JPEGs, grey or in colour, with 8 bits a component. scale is 1, 2, 4 or 8: an image
of H x W pixels is decoded to ceil(H / scale) x ceil(W / scale). regions (N, 4): top, left, height, width in pixels of that
reduced image; None for all of it. The result is a list of arrays (height, width, 3) in uint8: red, green and blue, three
times the same for a grey image. workers: how many threads decode at the same time, an image each.

Reduced, a component is the mean of each scale x scale of its samples; colours that are stored with half as many of them on
both axes are averaged over half as many. At scale 1 these colours are interpolated between the centres of the samples
(T.81 leaves both to the decoder; libjpeg-turbo's jidctred.c and jdsample.c). A region has the pixels that the whole image
has there.

jpeg.BadImage is raised for other images, for damaged ones, and for images of more than 512 pixels to a byte or 100 scans.
"""
