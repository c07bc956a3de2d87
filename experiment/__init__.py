"""Experiment sessions with participants and language models: study, lists, procedure, store, pages, engines, command line."""
