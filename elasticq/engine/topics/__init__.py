"""SNS topics: their actions, fan-out and deliveries."""
