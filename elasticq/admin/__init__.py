"""The admin port: state, metrics and orders for operators, on a port of its own."""
