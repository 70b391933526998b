"""Carries frames and snapshots between members over TCP: listens, dials, greets, discovers; decides nothing."""
