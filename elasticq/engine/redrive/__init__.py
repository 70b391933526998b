"""Dead-letter queues, forwarding of messages and message move tasks."""
