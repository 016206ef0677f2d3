"""Policies and scopes, for this context or the whole process."""
