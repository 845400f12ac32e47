"""Decode lines and streams of bytes into messages, and encode messages as lines. Sans-IO."""

from __future__ import annotations

from claude_wire.codec.decoder import Decoder, decode
from claude_wire.codec.encoder import Encoder, encode
from claude_wire.codec.engines import engine
from claude_wire.codec.kinds import Kind, peek, peek_lines
from claude_wire.codec.stats import DecoderStats

__all__ = ["Decoder", "DecoderStats", "Encoder", "Kind", "decode", "encode", "engine", "peek", "peek_lines"]
