# For type checkers where nothing is built; the generated package takes its place. `library` has the real types.
from typing import Any

ffi: Any
lib: Any
