"""Filter policies: how they are parsed, indexed and matched against messages."""
