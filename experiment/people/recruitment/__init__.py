"""Recruitment: where participants come from, who may begin, where they go, and whether the platform's list agrees."""
