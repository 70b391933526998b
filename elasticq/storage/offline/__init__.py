"""Commands on a stopped member: backup, restore, repair, and a new cluster from one member."""
