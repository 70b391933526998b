"""Settings of a Django project whose tasks go through the server under test."""

import os
from pathlib import Path

os.environ["AWS_ENDPOINT_URL"] = os.environ["ENDPOINTS"].split(",")[0]
WORK = Path(os.environ["WORK"])

SECRET_KEY = "a key of tests"
USE_TZ = True
INSTALLED_APPS = ["django_q"]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": WORK / "results.db", "OPTIONS": {"timeout": 60}}
}
Q_CLUSTER = {
    "name": f"django-q-{WORK.name}",
    "sqs": {"aws_region": "us-east-1", "receive_message_wait_time_seconds": 2},
    "workers": 2,
    "timeout": 20,
    "retry": int(os.environ.get("VISIBILITY_S", "30")),
    "bulk": 5,
    "log_level": "INFO",
}
