"""One test for many small values: as a test each, pytest would take several times as long as they do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(argument: str, values: Iterable[Any], name: Callable[[Any], str] = lambda value: value.__name__) -> Any:
    """Has a test function, or each of a class, called with every value. All values that fail are named.

    Args:
        argument: of the function, for the value.
        name: what a value is called in the message.
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
