"""Pure checkers of what clients saw. The simulator, process tests and operators use them."""
