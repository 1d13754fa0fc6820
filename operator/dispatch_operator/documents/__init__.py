"""Kubernetes objects in files, read as kubectl reads them and written so that every reader agrees."""

from dispatch_operator.documents.error import DocumentError
from dispatch_operator.documents.files import STDIN, read_object
from dispatch_operator.documents.writing import to_json, to_yaml

__all__ = ["STDIN", "DocumentError", "read_object", "to_json", "to_yaml"]
