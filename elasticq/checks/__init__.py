"""Pure checkers of what clients saw; used by the simulator, process tests and operators alike."""
