"""Small programs of stock JAX. Every public function of a module here takes nothing and returns a tree of arrays.

The same function runs on native JAX and through Gangway; test_programs.py compares values, dtypes, shapes and
shardings. A function whose output sharding JAX leaves to the compiler, with more than one good answer, is marked
`@compiler_chooses`: only its values are compared.
"""

import importlib
import inspect
import pkgutil


def compiler_chooses(function):
    function.compiler_chooses = True
    return function


def load():
    """All programs by name, 'module.function'."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            if function.__module__ == loaded.__name__ and not name.startswith("_"):
                found[f"{module.name}.{name}"] = function
    return found
