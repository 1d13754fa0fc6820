"""The Kubernetes client without the 900 modules generated for it: each is imported when it is first asked for.

Whatever is imported of kubernetes_asyncio brings all its models and APIs along, and kopf imports it by itself. That
is half of the time in which the operator starts, and the operator uses a handful of them.

Three packages, `kubernetes_asyncio.client` and in it `api` and `models`, consist of lines that import one class each.
Here these lines are read instead of executed, and the classes are attributes that are found when they are needed. All
other lines are executed as they stand; a line of another form would thus cost time, and break nothing.
"""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

CLIENT = "kubernetes_asyncio.client"
PACKAGES = frozenset({CLIENT, f"{CLIENT}.api", f"{CLIENT}.models"})
_IMPORT = re.compile(rf"^from ({re.escape(CLIENT)}\.(?:api|models)\.\w+) import (\w+)(?: as \2)?[ \t]*$", re.MULTILINE)


def import_models_on_demand() -> None:
    """Let the generated modules be imported on demand; to be called before anything of the client is imported."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds the three packages where Python finds them, for another loader."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Loads a package without the classes that it imports, which become attributes on demand (PEP 562)."""

    def exec_module(self, module: ModuleType) -> None:
        origins = {name: origin for origin, name in _IMPORT.findall(self._source())}
        # What a package imports of its own modules is an attribute of it, too.
        imported = {part for origin in origins.values() for part in (origin, origin.rpartition(".")[0])}

        def find(name: str) -> Any:  # noqa: ANN401 - an attribute of a module.
            if name in origins:
                found = getattr(import_module(origins[name]), name)
            elif (submodule := f"{module.__name__}.{name}") in imported:
                found = import_module(submodule)
            else:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            setattr(module, name, found)
            return found

        module.__getattr__ = find  # type: ignore[method-assign]
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name that the loader was made for.
        # Compiled anew each time: what Python caches of this file must stay the whole of it.
        return compile(_IMPORT.sub("", self._source()), self.path, "exec", dont_inherit=True)

    def _source(self) -> str:
        return self.get_source(self.name) or ""
