"""elasticq inside of test suites: ``ElasticQ``, one clock, faults on request, the pytest plugin."""
