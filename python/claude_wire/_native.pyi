# For type checkers where nothing is built; the generated package takes its place. `framing` has the real types.
from typing import Any

ffi: Any
lib: Any
