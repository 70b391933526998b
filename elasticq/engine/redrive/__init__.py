"""Dead-letter queues, forwarding of sent messages (copyTo, moveTo) and message move tasks."""
