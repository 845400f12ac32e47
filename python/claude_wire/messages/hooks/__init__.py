"""Hooks: what they are told, and what they return."""
