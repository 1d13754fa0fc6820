"""Kubernetes objects in files, read as kubectl reads them and written so that every reader agrees."""

from dispatch_operator.documents.error import DocumentError
from dispatch_operator.documents.files import STDIN, parse_object, read_object, read_text
from dispatch_operator.documents.writing import to_json, to_yaml

__all__ = ["STDIN", "DocumentError", "parse_object", "read_object", "read_text", "to_json", "to_yaml"]
