"""Runs of a study's model sessions: everything planned but not stored, each trial saved as it is answered.

A reply becomes one transaction: call, trial, score and regions together, and the session's end with its last trial. Killing the
process loses only requests that were not answered or were answered in the last quarter of a second; the same command then sends
only those. A reply without an answer (a transmission error) is stored as a call, and its trial is sent again.
"""
