"""How a function of JAX's is done otherwise: another one in its place, made of it."""

import functools
import sys


def replace(owner, name, make):
    """Puts make(original) where `owner` (a module or class) has `name`, and where modules imported it by that name.

    Once: returns the replacement, or None where JAX has no such function or it was replaced before.
    """
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "gangway"):
        return None
    # A method of jaxlib's classes has a qualified name that is no text.
    named = [a for a in functools.WRAPPER_ASSIGNMENTS if a != "__qualname__" or isinstance(original.__qualname__, str)]
    replacement = functools.update_wrapper(make(original), original, named)
    replacement.gangway = True
    setattr(owner, name, replacement)
    # JAX's public names for it, other libraries'.
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, replacement)
    return replacement
