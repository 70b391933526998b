"""kombu's own tests, each once: its marks that let one fail a few times are not heeded."""

from its_tests import run_tests

print(f"kombu: its own tests: {run_tests('-p', 'no:rerunfailures')}")
