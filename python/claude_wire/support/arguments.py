"""Check arguments early. The error for a wrong argument says what to write instead."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from claude_wire.support.text import one_line

if TYPE_CHECKING:
    import inspect

P = ParamSpec("P")
R = TypeVar("R")


def shown(value: object) -> str:
    """Return a wrong value's ``repr()``, cut to 80 characters, for an error message."""
    return one_line(repr(value))


def type_of(value: object) -> str:
    """Describe a wrong value for an error message: by the name of its type, or as ``the class X`` if it is a class.

    Some classes in claude-agent-sdk have the same names as ours, so the text marks them: ``HookMatcher of
    claude_agent_sdk``.
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    cls = type(value)
    return cls.__name__ + (" of claude_agent_sdk" if cls.__module__.startswith("claude_agent_sdk") else "")


def name_of(function: object) -> str:
    """Return the name of a function, or of the function in a partial. For other callables, return their type's name."""
    inner = function.func if isinstance(function, functools.partial) else function
    return one_line(getattr(inner, "__name__", "") or type(inner).__name__)


def qualified_name_of(function: object) -> str:
    """Return a function's name, including the classes and functions around its definition: ``Guards.check``."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__qualname__", "") or type(inner).__qualname__)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for a known name that is similar to ``name``; empty if there is none."""
    from difflib import get_close_matches  # slower to import than this whole module, like inspect

    by_case = {one.lower(): one for one in known}
    name = name[:100].lower()
    found = get_close_matches(name, by_case, 1) or get_close_matches(re.sub("[-_ ]", "", name), by_case, 1)
    return f" (did you mean {by_case[found[0]]!r}?)" if found else ""


def require_one_of(name: str, value: object, known: tuple[str, ...], otherwise: str = "") -> None:
    """Check that a value is one of ``known``.

    Args:
        otherwise: text to append to the message, which says how to pass a value that this version does not know.

    Raises:
        TypeError: the value is not a str.
        ValueError: the value is another str.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes a str, not {type_of(value)}: one of {', '.join(map(repr, known))}")
    if value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, known))}, not {shown(value)}{nearest(value, known)}{otherwise}"
        )


def require_function(name: str, function: object, takes: str, *, awaited: bool = True) -> None:
    """Check that a function can be called with one argument.

    Args:
        takes: describes the argument in the message, for example ``"the CanUseToolRequest"``.
        awaited: True if the caller awaits the result, so the function may be async.

    Raises:
        TypeError: ``function`` is not a function, takes other arguments, or is async although ``awaited`` is false.
    """
    import inspect

    if not callable(function):
        if inspect.iscoroutine(function):
            function.close()  # otherwise Python warns that the coroutine was never awaited
            raise TypeError(f"{name} must be a function, not its result: pass it without ()")
        raise TypeError(f"{name} must be a function, not {type_of(function)}")
    called = function_called_by(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise TypeError(f"{name} must return its answer, and {name_of(function)} is a generator: it has a yield")
    if not awaited and inspect.iscoroutinefunction(called):
        raise TypeError(f"{name} must be a plain function, and {name_of(function)} is async: nobody awaits it")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a C function may have no signature
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"{name} is called with one argument, {takes}; {name_of(function)}{_parameters(signature)} does not take "
            f"that: {error}"
        ) from None


def require_int(name: str, value: object, least: int) -> None:
    """Check that a value is an int, not a bool, and at least ``least``.

    Raises:
        TypeError: the value is not an int.
        ValueError: the value is too small.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type_of(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def require_seconds(name: str, seconds: object, *, or_zero: bool = False, or_none: bool = True) -> None:
    """Check that a value is a positive number of seconds. ``or_zero`` allows 0, ``or_none`` allows None.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is too small, or NaN.
    """
    if seconds is not None or not or_none:
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
            raise TypeError(f"{name} must be a number of seconds, not {type_of(seconds)}")
        if not (seconds > 0 or (or_zero and seconds == 0)):
            raise ValueError(f"{name} must be {'at least' if or_zero else 'more than'} 0 seconds, not {seconds!r}")


def function_called_by(function: Any) -> Any:
    """Return the function that a callable runs: the function in a partial, or an object's ``__call__``."""
    import inspect

    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) or inspect.ismethod(function) or isinstance(function, type):
        return function
    return type(function).__call__


def _parameters(signature: inspect.Signature) -> str:
    plain = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return one_line(str(signature.replace(parameters=plain, return_annotation=signature.empty)))


def tells_where(places: Mapping[str, str], *, owner: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: its error for an unknown keyword argument then says what to write instead.

    Args:
        places: keyword -> what to write instead. For other names, the error suggests a similar keyword.
        owner: the function's name in the message. Empty: ``__name__``.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        import inspect

        known = {
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }
        called = owner or function.__name__

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in known:
                    place = places.get(name)
                    hint = f": {place}" if place else nearest(name, known - {"self"})
                    raise TypeError(f"{called} has no argument {one_line(name)!r}{hint}")
            return function(*args, **kwargs)

        return call

    return decorate
