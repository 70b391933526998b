"""The admin port: state, metrics and orders for operators, apart from the port of the clients."""
