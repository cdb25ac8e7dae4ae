"""Pods: their metadata, the spec they share with templates, their updates and their status."""
