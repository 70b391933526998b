"""Requests other than SQS and SNS calls: REST, health, peeking and test pages."""
