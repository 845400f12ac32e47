# Type checkers use this stub if the native library is not built. `library` declares the types.
from typing import Any

ffi: Any
lib: Any
