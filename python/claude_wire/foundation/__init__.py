"""What all rooms stand on: refused arguments, foreign text made safe to print, ids within bounds."""
