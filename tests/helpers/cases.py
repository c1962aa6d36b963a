"""Many cases in one test: the message of a failure names its case."""

import contextlib


@contextlib.contextmanager
def case(*words):
    """Add the name of a case to any error raised within."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {', '.join(map(str, words))}")
        raise
