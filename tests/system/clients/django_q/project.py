"""The Django project of these jobs, with its tables, in the process that imports this; and the command of a worker.

Parts of Django can be imported only after its setup.
"""

import os
from importlib import import_module

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

import django
from django.apps import apps
from django.core.management import call_command

django.setup()
call_command("migrate", verbosity=0)

tasks = import_module("django_q.tasks")
Failure = apps.get_model("django_q", "Failure")
COMMAND = ("django", "qcluster")
