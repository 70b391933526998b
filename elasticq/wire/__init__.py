"""Turns bytes into commands and results into bytes, in AWS JSON 1.0 and in AWS Query."""
