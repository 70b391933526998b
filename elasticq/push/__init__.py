"""The delivery of notifications to subscribed web servers. Only the master delivers."""
