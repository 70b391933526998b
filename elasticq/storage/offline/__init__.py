"""Commands on a stopped member: backup, repair, and founding a new cluster from one member."""
