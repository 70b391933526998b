"""Drives one Node: clock in, effects out."""
