"""Compressed files as the text in them."""

import gzip


def read_text(path):
    return gzip.decompress(path.read_bytes()).decode()


def write_text(path, text):
    path.write_bytes(gzip.compress(text.encode() if isinstance(text, str) else text, mtime=0))
