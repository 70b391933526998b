"""The answers to requests that are not hot: REST, health, peeking and test pages, and odd SQS and SNS calls."""
