"""Access policies: how they are parsed and evaluated."""
