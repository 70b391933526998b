"""What needs an operator's attention: findings about queues, subscriptions, clients, members and the whole cluster."""
