"""Delivers notifications to subscriptions that are web servers, on the master."""
