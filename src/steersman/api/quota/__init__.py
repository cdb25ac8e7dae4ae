"""Quotas: what objects use, and which of them a quota is about. For admission and the controller alike."""
