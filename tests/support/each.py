"""Run one test for many small values. One pytest item per value would take several times as long."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(argument: str, values: Iterable[Any], name: Callable[[Any], str] = lambda value: value.__name__) -> Any:
    """Call a test function, or each test of a class, with every value. The failure names all values that fail.

    Args:
        argument: the name of the argument that receives the value.
        name: returns the name of a value for the failure message.
    """
    all_values = list(values)
    assert all_values

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            for key, function in list(vars(test).items()):
                if key.startswith("test_"):
                    setattr(test, key, decorate(function))
            return test
        signature = inspect.signature(test)

        def every(*arguments: Any, **others: Any) -> None:
            failed: dict[str, Exception] = {}
            for value in all_values:
                try:
                    test(*arguments, **others, **{argument: value})
                except Exception as error:
                    failed[name(value)] = error
            if failed:
                raise AssertionError(f"fails for {', '.join(failed)}") from next(iter(failed.values()))

        every.__name__, every.__qualname__, every.__doc__ = test.__name__, test.__qualname__, test.__doc__
        every.__module__ = test.__module__
        every.__dict__.update(vars(test))
        left = [one for one in signature.parameters.values() if one.name != argument]
        vars(every)["__signature__"] = signature.replace(parameters=left)
        return every

    return decorate
