"""The access policies of queues and topics: parsing and evaluation."""
