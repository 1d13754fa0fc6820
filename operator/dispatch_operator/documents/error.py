"""The one failure of reading a file."""


class DocumentError(Exception):
    """A file that can't be used; the message names the file and, where there is one, the line and column."""


class DuplicateKeyError(DocumentError):
    """A key that an object has twice, so that readers would disagree about its value."""
