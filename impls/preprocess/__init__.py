"""preprocess(jpegs, regions, weight, threshold=0, size=128, mean=MEAN, std=STD): one region of each JPEG, found and marked.

What a program does around its network, with one convolution in the network's place: decode N JPEGs, crop a region of each,
resize it to fit size x size pixels, convert to float32, normalise, pad; convolve the batch (N, 3, size, size) with weight
(1, 3, R, S), R and S odd, "same" borders; mark what is above the threshold, and paste that back into a mask of the image's
size.

jpegs: bytes of sequential or progressive JPEGs, grey or in colour, with 8 bits a component. jpeg.BadImage is raised for
others, for damaged ones, and for images of more than 512 pixels to a byte or 100 scans, whose decoding costs more than their
size lets expect. regions (N, 4): top, left, height, width in pixels. The result is a list of masks (H, W) in uint8, 255 where
the response is above the threshold, 0 elsewhere and outside the region.

The part of a patch that has pixels, h x w, is the region scaled by size / max(height, width), rounded half up, at least 1;
it lies at the top left, with zeros beyond. Resizing is bilinear, a pixel being a square: output x lies at
(x + 1/2) width / w - 1/2 of the region, whose border repeats. Pixel (y, x) of the mask is that of row
((2 y + 1) h) // (2 height) of the response; columns are alike.
"""
