"""Recruitment: platforms, admission, return links with completion codes, and reconciliation with the platform's list."""
