"""Soaks: a topology at full load in real time, disturbed for as long as one likes, judged by a witness, and weighed."""
